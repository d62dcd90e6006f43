// Drag and drop, findings at once, and what is too large stays here: the form works without it.
"use strict";
const form = document.querySelector("form[data-upload]");
const picker = form.querySelector("input[type=file]");
const area = form.querySelector("textarea");
const drop = form.querySelector(".drop");
const chosen = form.querySelector("[data-chosen]");
const found = document.getElementById("found");
const texts = JSON.parse(document.getElementById("texts").textContent);
const filled = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
const mostFileBytes = Number(form.dataset.mostFileBytes), mostScriptBytes = Number(form.dataset.mostScriptBytes);
// Of a whole request, less what is sent around the files: names, boundaries, the other fields.
const mostBytes = Number(form.dataset.mostBytes) - 16384;
const shape = { maximumFractionDigits: 1, useGrouping: false };
const mib = (bytes) => `${(bytes / 2 ** 20).toLocaleString(document.documentElement.lang, shape)} MiB`;
let asked = 0;

function tell(text, tone) {
  const line = document.createElement("p");
  line.textContent = text;
  const box = document.createElement("div");
  box.className = tone ? `flash tone-${tone}` : "lede";
  box.append(line);
  found.replaceChildren(box);
  found.setAttribute("aria-busy", String(!tone));
}

// What the service would refuse unread is refused here, where the form and all that was typed is still there.
function tooLarge() {
  // What is chosen goes before what is typed, and only archives hold what is not counted.
  const files = picker.files.length ? [...picker.files] : [{ name: texts.pasted, size: new Blob([area.value]).size }];
  const sum = (some) => some.reduce((bytes, file) => bytes + file.size, 0);
  const scripts = files.filter((file) => !(file instanceof File) || /\.py$/i.test(file.name));
  const largest = scripts.find((file) => file.size > mostFileBytes);
  if (!largest && sum(scripts) <= mostScriptBytes && sum(files) <= mostBytes) return "";
  const sizes = { file: mib(mostFileBytes), all: mib(mostScriptBytes) };
  return largest
    ? filled(texts.file_too_large, { ...sizes, name: largest.name, size: mib(largest.size) })
    : filled(texts.all_too_large, { ...sizes, size: mib(sum(files)) });
}

// Of a notebook only the text of its cells is read: the pictures in its outputs need not travel.
async function withoutOutputs(file) {
  try {
    const notebook = JSON.parse(await file.text());
    for (const cell of notebook.cells) {
      if (cell.cell_type === "code") cell.outputs = [];
      delete cell.attachments;
    }
    return new File([JSON.stringify(notebook)], file.name);
  } catch { return file; } // The service says what is wrong with it.
}

async function lightenNotebooks() {
  const isHeavy = (file) => /\.ipynb$/i.test(file.name) && file.size > mostFileBytes;
  if (![...picker.files].some(isHeavy)) return;
  const lighter = new DataTransfer();
  for (const file of picker.files) lighter.items.add(isHeavy(file) ? await withoutOutputs(file) : file);
  picker.files = lighter.files;
}

// Browsers only count several files, and cut a long name in its middle.
function showChosen() {
  const names = [...picker.files].map((file) => file.name).join(", ");
  chosen.textContent = names;
  chosen.hidden = picker.files.length < 2 && names.length < 25;
}

// On a phone the result lies far below the form; whoever sees it already keeps the focus where it is.
function bringIntoView(asked) {
  const place = found.getBoundingClientRect();
  const outOfSight = place.top < 0 || place.top > window.innerHeight * 0.7;
  if (outOfSight) found.scrollIntoView({ block: "start" });
  if (outOfSight || asked) found.focus({ preventScroll: true });
}

async function look() {
  const turn = ++asked;
  await lightenNotebooks();
  if (turn !== asked) return;
  showChosen();
  const refused = tooLarge();
  picker.setCustomValidity(refused);
  if (refused) { tell(refused, "bad"); return; }
  if (!picker.files.length && !area.value.trim()) { found.replaceChildren(); return; }
  tell(texts.reading, "");
  try {
    const answer = await fetch(form.dataset.upload, { method: "POST", body: new FormData(form), redirect: "error" });
    const page = await answer.text();
    if (turn !== asked) return;
    if (answer.status === 413) { tell(texts.refused, "bad"); return; }
    if (!answer.ok) { tell(texts.unread, "warn"); return; }
    // Parsed apart and adopted: what the server escaped stays text, and nothing of it could run.
    found.replaceChildren(...new DOMParser().parseFromString(page, "text/html").body.childNodes);
    found.setAttribute("aria-busy", "false");
  } catch {
    if (turn === asked) tell(texts.unreachable, "warn");
  }
}

const lookAndShow = (asked) => look().then(() => bringIntoView(asked));

form.querySelector("[data-drop-hint]").hidden = false;
for (const kind of ["dragenter", "dragover"]) {
  drop.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.add("over"); });
}
for (const kind of ["dragleave", "drop"]) drop.addEventListener(kind, () => drop.classList.remove("over"));
drop.addEventListener("drop", (event) => {
  event.preventDefault();
  if (!event.dataTransfer.files.length) return;
  picker.files = event.dataTransfer.files;
  lookAndShow(false);
});
// A script that misses the frame must not replace the page.
for (const kind of ["dragover", "drop"]) window.addEventListener(kind, (event) => event.preventDefault());
picker.addEventListener("change", () => lookAndShow(false));
area.addEventListener("paste", () => setTimeout(look));
area.addEventListener("change", look);
form.addEventListener("submit", (event) => {
  if (event.submitter?.value === "check") {
    event.preventDefault();
    lookAndShow(true);
  }
});
// Chosen before this script was there, or kept by the browser on the way back.
if (picker.files.length || area.value.trim()) look();
