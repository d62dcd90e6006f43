// A part of a page that renews itself every data-renew seconds, where the browser's own reload would take away the place
// and what is being typed. Nothing changes under somebody's hands, and a page without this script has a link to renew it.
"use strict";
const renewed = () => document.querySelector("[data-renew]");

function inUse(part) {
  const edited = (field) => field.type !== "hidden" && field.defaultValue !== undefined && field.value !== field.defaultValue;
  return document.hidden || part.contains(document.activeElement) || [...part.querySelectorAll("input, textarea")].some(edited);
}

async function renew() {
  if (!inUse(renewed())) {
    try {
      const answer = await fetch(location.href);
      // Signed out meanwhile, for example: the browser goes where the service sends it.
      if (answer.redirected) { location.reload(); return; }
      if (answer.ok) replace(new DOMParser().parseFromString(await answer.text(), "text/html"));
    } catch {
      // The service is away for a moment: what stands there stays, and it is asked again.
    }
  }
  wait();
}

function replace(page) {
  const part = renewed(), fresh = page.getElementById(part.id);
  if (!fresh || inUse(part)) return;
  // What stood there before is not read out anew with each renewal.
  for (const said of fresh.querySelectorAll("[role=status], [role=alert]")) said.removeAttribute("role");
  part.replaceWith(document.adoptNode(fresh));
  showLocalTimes(fresh);
}

function wait() {
  const part = renewed();
  if (part) setTimeout(renew, 1000 * Number(part.dataset.renew));
}

wait();
