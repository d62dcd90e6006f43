// An attempt while it waits and runs. Everything shown is set as text; the page says the same without this.
"use strict";
const panel = document.getElementById("live");
const order = ["queue", "prepare", "run", "evaluate", "report"];
const steps = new Map([...panel.querySelectorAll("[data-step]")].map((item) => [item.dataset.step, item]));
const line = document.getElementById("now-line");
const epochs = document.getElementById("epochs");
const logs = document.getElementById("logs");
const texts = JSON.parse(document.getElementById("texts").textContent);
const filled = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
const KEPT = 16384;
panel.querySelectorAll(".no-script").forEach((item) => item.remove());

const write = (text) => { if (line.textContent.trim() !== text) line.textContent = text; };
let told = line.textContent.trim();
const say = (text) => { told = text; write(text); };
const spoken = (seconds) => seconds < 60 ? `${Math.max(0, Math.round(seconds))} s`
  : `${Math.floor(seconds / 60)} min ${String(Math.round(seconds % 60)).padStart(2, "0")} s`;
const number = (value) => Number(value).toLocaleString(document.documentElement.lang, { maximumSignificantDigits: 4 });

let heard = Date.now();
// Soon enough for a deadlock, which is ended after some 15 s.
const QUIET_S = 6;
const LONG_QUIET_S = 30;

// A run that stands still says nothing: that is said beside its last words, now and then, so that nobody is read a clock.
function quiet() {
  const passed = (Date.now() - heard) / 1000, every = passed < 60 ? QUIET_S : LONG_QUIET_S;
  const seconds = Math.floor(passed / every) * every;
  if (seconds && steps.get("run").className === "now") write(`${told} ${filled(texts.quiet, { time: spoken(seconds) })}`);
}

// What is said of waiting is untrue of a run, which costs an attempt; and a button that asks first has its dots.
function waits(does) {
  for (const item of document.querySelectorAll(".while-waiting")) item.hidden = !does;
  const button = document.getElementById("cancel");
  if (button && !button.disabled) button.textContent = does ? texts.cancel : texts.ask_cancel;
  document.title = document.title.replace(does ? texts.is_judged : texts.waits, does ? texts.waits : texts.is_judged);
}

function tick() {
  for (const clock of panel.querySelectorAll("[data-since]")) {
    clock.textContent = spoken((Date.now() - new Date(clock.dataset.since)) / 1000);
  }
}

function enter(phase, at) {
  const index = order.indexOf(phase);
  if (index < 0) return;
  order.forEach((name, place) => {
    const item = steps.get(name), clock = item.querySelector(".clock");
    const state = place < index ? "done" : place === index ? "now" : "ahead";
    if (clock.dataset.since && state !== "now") {
      clock.textContent = state === "done" ? spoken((new Date(at) - new Date(clock.dataset.since)) / 1000) : "";
      delete clock.dataset.since;
    }
    if (state === "ahead") clock.textContent = "";
    if (state === "now" && item.className !== "now") clock.dataset.since = at;
    item.className = state;
    if (state === "now") item.setAttribute("aria-current", "step"); else item.removeAttribute("aria-current");
  });
  tick();
}

function print(rank, stream, text) {
  logs.hidden = false;
  let term = logs.querySelector(`[data-rank="${Number(rank)}"]`);
  if (!term) {
    term = document.createElement("div");
    term.className = "term";
    term.dataset.rank = String(Number(rank));
    const head = document.createElement("h3"), out = document.createElement("pre");
    head.textContent = filled(texts.rank, { rank: Number(rank) });
    out.tabIndex = 0;
    out.setAttribute("role", "group");
    out.setAttribute("aria-label", filled(texts.output, { rank: Number(rank) }));
    term.append(head, out);
    const after = [...logs.querySelectorAll("[data-rank]")].find((other) => Number(other.dataset.rank) > rank);
    logs.querySelector(".terms").insertBefore(term, after ?? null);
  }
  const out = term.querySelector("pre");
  const follows = out.scrollHeight - out.scrollTop - out.clientHeight < 40;
  const piece = document.createElement("span");
  if (stream === "stderr") piece.className = "err";
  piece.textContent = text;
  out.append(piece);
  while (out.childNodes.length > 1 && out.textContent.length > KEPT) out.firstChild.remove();
  if (follows) out.scrollTop = out.scrollHeight;
}

const on = {
  queued: (data) => { enter("queue", data.at); say(texts.queued); },
  requeued: (data) => {
    enter("queue", data.at);
    waits(true);
    say(texts.requeued);
    logs.querySelector(".terms").replaceChildren();
    logs.hidden = epochs.hidden = true;
  },
  claimed: (data) => {
    enter("prepare", data.at);
    waits(false);
    document.querySelectorAll(".why-waiting").forEach((item) => item.remove());
    say(texts.claimed);
  },
  phase: (data) => {
    enter(data.phase, data.at);
    if (order.indexOf(data.phase) > 0) say(texts[data.phase]);
  },
  epoch: (data) => {
    const text = texts[`epoch${data.of ? "_of" : ""}${data.loss === null ? "" : "_loss"}`];
    say(filled(text, { number: data.epoch, of: data.of, loss: number(data.loss) }));
    epochs.hidden = !data.of;
    if (data.of) { epochs.max = data.of; epochs.value = data.epoch; }
  },
  log: (data) => print(data.rank, data.stream, data.text ?? ""),
  cancel_requested: () => say(texts.cancelling),
  place: (data) => {
    const text = data.starts_in_s === null ? texts.place : data.starts_in_s < 1 ? texts.place_now : texts.place_soon;
    say(filled(text, { position: data.position, time: spoken(data.starts_in_s) }));
  },
};

const address = new URL(panel.dataset.live, location.href);
let source = null;

function listen() {
  source = new EventSource(address);
  for (const [kind, act] of Object.entries(on)) {
    source.addEventListener(kind, (event) => {
      heard = Date.now();
      if (event.lastEventId) address.searchParams.set("after", event.lastEventId);
      act(JSON.parse(event.data));
    });
  }
  source.addEventListener("end", () => { source.close(); say(texts.over); location.reload(); });
  source.addEventListener("error", () => {
    // A browser comes back by itself, unless it was refused; then the page is loaded again, as without a script.
    if (source?.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 5000);
  });
}

// Browsers hold few connections to one host: tabs that nobody looks at let go of theirs, and catch up later.
document.addEventListener("visibilitychange", () => {
  source?.close();
  source = null;
  if (!document.hidden) listen();
});
if (!document.hidden) listen();
for (const out of logs.querySelectorAll("pre")) out.scrollTop = out.scrollHeight;
tick();
setInterval(() => { tick(); quiet(); }, 1000);
