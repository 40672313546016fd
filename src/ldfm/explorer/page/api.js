// Questions to the server. A newer question of this page ends an older one there; here its answer is dropped.

const PAGE = crypto.getRandomValues(new Uint32Array(2)).join("-");

export class Refused extends Error {
  constructor(status, document) {
    super(document.error);
    this.status = status;
    this.impossible = Boolean(document.impossible);
  }
}

async function documentOf(response) {
  const document = await response.json();
  if (!response.ok) throw new Refused(response.status, document);
  return document;
}

export async function describe() {
  return documentOf(await fetch("api/model"));
}

const MOST_KEPT = 400;
const kept = new Map(); // answers: the same question has the same answer

function keyOf(question, evidence, more) {
  return JSON.stringify([question, [...evidence].sort(), more]);
}

export function keptAnswer(question, evidence, more = {}) {
  return kept.get(keyOf(question, evidence, more));
}

export async function ask(question, evidence, signal, more = {}) {
  const key = keyOf(question, evidence, more);
  if (kept.has(key)) return kept.get(key);
  const body = JSON.stringify({ evidence: Object.fromEntries(evidence), page: PAGE, ...more });
  const headers = { "Content-Type": "application/json" };
  const answer = await documentOf(await fetch(`api/${question}`, { method: "POST", headers, body, signal }));
  if (kept.size >= MOST_KEPT) kept.delete(kept.keys().next().value);
  kept.set(key, answer);
  return answer;
}
