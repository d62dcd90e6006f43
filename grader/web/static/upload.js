// Drag and drop, and findings at once: the form works without it.
"use strict";
const form = document.querySelector("form[data-upload]");
const picker = form.querySelector("input[type=file]");
const area = form.querySelector("textarea");
const drop = form.querySelector(".drop");
const found = document.getElementById("found");
let asked = 0;

function tell(text, busy) {
  const line = document.createElement("p");
  line.className = "lede";
  line.textContent = text;
  found.replaceChildren(line);
  found.setAttribute("aria-busy", String(busy));
}

async function look() {
  const turn = ++asked;
  if (!picker.files.length && !area.value.trim()) { found.replaceChildren(); return; }
  tell("Reading the script …", true);
  try {
    const answer = await fetch(form.dataset.upload, { method: "POST", body: new FormData(form), redirect: "error" });
    const page = await answer.text();
    if (turn !== asked) return;
    if (!answer.ok) { tell("It could not be read just now. Handing it in is possible all the same.", false); return; }
    // Parsed apart and adopted: what the server escaped stays text, and nothing of it could run.
    found.replaceChildren(...new DOMParser().parseFromString(page, "text/html").body.childNodes);
    found.setAttribute("aria-busy", "false");
  } catch {
    if (turn === asked) tell("The grader cannot be reached. Your script is still here; try again in a moment.", false);
  }
}

form.querySelector("[data-drop-hint]").hidden = false;
for (const kind of ["dragenter", "dragover"]) {
  drop.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.add("over"); });
}
for (const kind of ["dragleave", "drop"]) drop.addEventListener(kind, () => drop.classList.remove("over"));
drop.addEventListener("drop", (event) => {
  event.preventDefault();
  if (!event.dataTransfer.files.length) return;
  picker.files = event.dataTransfer.files;
  look();
});
// A script that misses the frame must not replace the page.
for (const kind of ["dragover", "drop"]) window.addEventListener(kind, (event) => event.preventDefault());
picker.addEventListener("change", look);
area.addEventListener("paste", () => setTimeout(look));
area.addEventListener("change", look);
form.addEventListener("submit", (event) => {
  if (event.submitter?.value === "check") {
    event.preventDefault();
    look().then(() => found.scrollIntoView({ block: "start" }));
  }
});
// Chosen before this script was there, or kept by the browser on the way back.
if (picker.files.length || area.value.trim()) look();
