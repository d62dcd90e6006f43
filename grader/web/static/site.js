// Times in the reader's own zone, but for pages in the zone of their course. Pages are whole without it.
"use strict";
// Days before months in English, as the server writes them.
const language = document.documentElement.lang === "en" ? "en-GB" : document.documentElement.lang;
const zones = document.querySelectorAll("[data-zone]");
function showLocalTimes(part) {
  if (!zones.length) return;
  for (const time of part.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    time.title = time.textContent;
    const form = "day" in time.dataset ? { dateStyle: "long" } : { dateStyle: "medium", timeStyle: "short" };
    time.textContent = new Intl.DateTimeFormat(language, form).format(at);
  }
}
showLocalTimes(document);
for (const zone of zones) zone.textContent = Intl.DateTimeFormat().resolvedOptions().timeZone || zone.dataset.zone;
