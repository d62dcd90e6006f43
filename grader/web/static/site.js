// Times in the reader's own zone. Pages are whole without it.
"use strict";
function showLocalTimes(part) {
  for (const time of part.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    time.title = time.textContent;
    const form = "day" in time.dataset ? { dateStyle: "long" } : { dateStyle: "medium", timeStyle: "short" };
    time.textContent = new Intl.DateTimeFormat("en-GB", form).format(at);
  }
}
showLocalTimes(document);
for (const zone of document.querySelectorAll("[data-zone]")) zone.textContent = Intl.DateTimeFormat().resolvedOptions().timeZone || "of this browser";
