// The page: evidence in the address, boxes and the forest follow it.

import { ask, describe, keptAnswer, Refused } from "./api.js";
import { element, makeBox, percent } from "./boxes.js";
import { Forest } from "./forest.js";

const $ = (id) => document.getElementById(id);
const EFFORTS = ["quick", "usual", "thorough"];
const page = { evidence: new Map(), pinned: null, boxes: [], forest: null, arcs: null, work: null, complete: false, note: "" };

// --- evidence in the address: #HR=HIGH&BP=LOW, and behind | that of the pinned context ---------------------------------

function read(text) {
  const parts = text.split("&").filter(Boolean).map((part) => part.split("=").map(decodeURIComponent));
  return new Map(parts.filter((part) => part.length === 2));
}

function written(evidence) {
  return [...evidence].map((pair) => pair.map(encodeURIComponent).join("=")).join("&");
}

function address() {
  return `#${written(page.evidence)}${page.pinned ? `|${written(page.pinned.evidence)}` : ""}`;
}

function readAddress() {
  const [now, pinned] = location.hash.slice(1).split("|");
  page.evidence = read(now);
  page.pinned = pinned === undefined ? null : { evidence: read(pinned) };
}

// --- what people do ----------------------------------------------------------------------------------------------------

function choose(name, value) {
  if (value === undefined || page.evidence.get(name) === value) page.evidence.delete(name);
  else page.evidence.set(name, value);
  moved();
}

function moved() {
  history.replaceState(null, "", address());
  setComplete(false);
  refresh();
}

function setComplete(is) {
  page.complete = is;
  page.note = "";
  $("complete").setAttribute("aria-pressed", String(is));
  if (!is) for (const box of page.boxes) box.showComplete(undefined);
}

function togglePin() {
  page.pinned = page.pinned ? null : { evidence: new Map(page.evidence) };
  history.replaceState(null, "", address());
  refresh();
}

function go(name) {
  const box = page.boxes.find((one) => one.name === name);
  $("search").value = "";
  filter();
  box.root.scrollIntoView({ block: "center" });
  box.root.focus({ preventScroll: true });
}

function filter() {
  const words = $("search").value.trim().toLowerCase();
  for (const box of page.boxes) box.root.hidden = words !== "" && !box.matches(words);
}

// --- what the page shows -----------------------------------------------------------------------------------------------

function said(evidence) {
  return evidence.size ? [...evidence].map(([name, value]) => `${name} = ${value}`).join(", ") : "no evidence";
}

function showChips() {
  $("chips").replaceChildren(...[...page.evidence].map(([name, value]) => {
    const chip = element("button", { type: "button", "aria-label": `Clear ${name} = ${value}` }, `${name} = ${value} ×`);
    chip.addEventListener("click", () => choose(name, undefined));
    return element("li", {}, chip);
  }));
  $("clear").disabled = page.evidence.size === 0;
  $("pin").setAttribute("aria-pressed", String(page.pinned !== null));
  $("pin").textContent = page.pinned ? "Unpin" : "Pin this context";
}

function showPosteriors(answer) {
  for (const box of page.boxes) {
    box.show(answer.posteriors[box.name], page.evidence.get(box.name), answer.exact);
    box.mark("observed", page.evidence.has(box.name));
  }
}

function showPinned() {
  const found = page.pinned?.posteriors;
  for (const box of page.boxes) {
    box.showPinned(found?.posteriors[box.name], found ? page.pinned.evidence.get(box.name) : undefined);
  }
}

function showForest() {
  if (!page.arcs) return;
  const threshold = Number($("threshold").value);
  $("threshold-shown").textContent = threshold.toFixed(2);
  const pinned = page.pinned?.arcs ?? null;
  page.forest.show(page.arcs, pinned, threshold, page.evidence);
  const legend = pinned
    ? [element("span", { class: "key more" }, "More probable now"), ` (${said(page.evidence)}) · `,
      element("span", { class: "key less" }, "when pinned"), ` (${said(page.pinned.evidence)}, also the ticks on bars) · `,
      element("span", { class: "key both" }, "in both"), ". As thick as the difference."]
    : [`Given ${said(page.evidence)}: arcs as thick as they are probable, averaged over what is unknown. `,
      element("span", { class: "key root" }, "probably a root."), " Pin this context to see what other evidence changes."];
  $("legend").replaceChildren(...legend);
}

function showStatus(answer, log, working) {
  const parts = [];
  if (answer) {
    const errors = Object.values(answer.posteriors).flatMap((one) => one.standard_errors ?? []);
    if (answer.exact) parts.push("Exact: all completions summed");
    else if (errors.length) parts.push(`Sampled, largest standard error ${percent(Math.max(...errors))} %`);
    else parts.push("Sampled");
    if (!answer.exact && answer.r_hat !== null && answer.r_hat <= 1.05) parts.push("chains agree");
    if (!answer.exact && !(answer.r_hat <= 1.05)) parts.push("chains do not agree yet");
  }
  if (log) {
    const error = log.exact || log.standard_error === null ? "" : ` ± ${log.standard_error.toFixed(2)}`;
    parts.push(`log p(evidence) = ${log.log_probability === null ? "−∞" : log.log_probability.toFixed(3)}${error}`);
  }
  if (page.note) parts.push(page.note);
  if (working) parts.push(working);
  $("status").textContent = `${parts.join(" · ")}`;
  document.body.classList.toggle("working", Boolean(working));
}

function showFault(error) {
  $("fault").hidden = error === null;
  document.body.classList.toggle("stale", error !== null);
  if (error === null) return;
  $("fault").textContent = error.impossible
    ? `This evidence is impossible: ${error.message}. Clear a value to go on.` : error.message;
}

// --- answers, the quick ones first -------------------------------------------------------------------------------------

async function refresh() {
  page.work?.abort();
  const work = page.work = new AbortController();
  showChips();
  for (const box of page.boxes) box.mark("observed", page.evidence.has(box.name));
  const slow = setTimeout(() => showStatus(null, null, "Working; the first answer after an installation compiles for a minute or two …"), 3000);
  try {
    await answer(work.signal, () => clearTimeout(slow));
  } catch (error) {
    clearTimeout(slow);
    if (work.signal.aborted || (error instanceof Refused && error.status === 409)) return;
    showStatus(null, null, "");
    showFault(error instanceof Refused ? error : new Error(`No answer: is ldfm explore still running? (${error.message})`));
  }
}

async function answer(signal, answered) {
  const evidence = new Map(page.evidence);
  const posteriors = (level) => ask("posteriors", evidence, signal, { effort: EFFORTS[level] });
  document.body.classList.add("working");
  let level = Math.max(0, EFFORTS.findLastIndex((effort) => keptAnswer("posteriors", evidence, { effort })));
  let found = await posteriors(level);
  answered();
  showFault(null);
  showPosteriors(found);
  showStatus(found, null, "refining …");
  page.arcs = (await ask("forest", evidence, signal)).arcs;
  await fillPinned(signal);
  showForest();
  if (page.complete) await showMostProbable(evidence, signal);
  let log = null;
  while (true) {
    if (evidence.size && (found.met_target || level > 0)) log = await ask("log-probability", evidence, signal);
    if (found.met_target || level === EFFORTS.length - 1) break;
    showStatus(found, log, "refining …");
    level += 1;
    found = await posteriors(level);
    showPosteriors(found);
  }
  showStatus(found, log, "");
}

async function showMostProbable(evidence, signal) {
  const best = await ask("most-probable", evidence, signal);
  for (const box of page.boxes) box.showComplete(best.values[box.name]);
  page.note = best.exact ? "★ most probable completion" : "★ most probable completion that a search found";
}

async function fillPinned(signal) {
  const pinned = page.pinned;
  if (pinned) {
    pinned.arcs = (await ask("forest", pinned.evidence, signal)).arcs;
    pinned.posteriors = await ask("posteriors", pinned.evidence, signal, { effort: "usual" });
  }
  showPinned();
}

async function begin() {
  try {
    const model = await describe();
    $("title").textContent = model.title;
    document.title = `${model.title} · ldfm explore`;
    page.boxes = model.variables.map((variable) => makeBox(variable, choose));
    page.forest = new Forest(model.variables, go);
    $("boxes").replaceChildren(...page.boxes.map((box) => box.root));
  } catch (error) {
    showFault(error);
    return;
  }
  const header = document.querySelector("header");
  new ResizeObserver(() => document.body.style.setProperty("--head", `${header.offsetHeight}px`)).observe(header);
  let width = $("picture").clientWidth;
  new ResizeObserver(() => {
    if (width === $("picture").clientWidth) return;
    width = $("picture").clientWidth;
    showForest();
  }).observe($("picture"));
  $("search").addEventListener("input", filter);
  $("threshold").addEventListener("input", showForest);
  $("clear").addEventListener("click", () => { page.evidence.clear(); moved(); });
  $("pin").addEventListener("click", togglePin);
  $("complete").addEventListener("click", () => { setComplete(!page.complete); refresh(); });
  addEventListener("hashchange", () => { readAddress(); setComplete(false); refresh(); });
  addEventListener("keydown", (event) => {
    if (event.key === "/" && !(event.target instanceof HTMLInputElement)) {
      event.preventDefault();
      $("search").focus();
    }
  });
  readAddress();
  refresh();
}

begin();
