// Variables on a circle, arcs as thick as they are probable; of two contexts, as thick as their probabilities differ.

import { element, svg } from "./boxes.js";

const RADIUS = 230;
const NARROW = 560; // pixels: below, the circle gets smaller and the letters stay
const GAP = 12; // between a variable and its label
const LONGEST = 18; // letters of a label

function matrixOf(arcs, count) {
  const matrix = Array.from({ length: count + 1 }, () => new Float64Array(count));
  for (const [parent, child, share] of arcs) matrix[parent + 1][child] = share;
  return matrix;
}

// strongly dependent variables become neighbours: greedily, next to the strongest of those placed
function orderOf(arcs, count) {
  const strength = Array.from({ length: count }, () => new Float64Array(count));
  for (const [parent, child, share] of arcs) {
    if (parent < 0) continue;
    strength[parent][child] += share;
    strength[child][parent] += share;
  }
  const left = new Set(Array.from({ length: count }, (_, place) => place));
  const order = [];
  const take = (place) => { order.push(place); left.delete(place); };
  take(0);
  while (left.size) {
    const last = strength[order.at(-1)];
    let best = [...left].reduce((a, b) => (last[b] > last[a] ? b : a));
    if (last[best] < 0.05) {
      const nearest = (place) => Math.max(...order.map((placed) => strength[placed][place]));
      best = [...left].reduce((a, b) => (nearest(b) > nearest(a) ? b : a));
    }
    take(best);
  }
  return order;
}

function angleOf(position, count) {
  return (2 * Math.PI * position) / count - Math.PI / 2;
}

function shortened(text) {
  return text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text;
}

function label(names, place) {
  return place < 0 ? "(root)" : names[place];
}

function written(point) {
  return `${point.x.toFixed(1)},${point.y.toFixed(1)}`;
}

// the point so far from one on the way to another
function towards(from, to, by) {
  const share = by / Math.max(Math.hypot(to.x - from.x, to.y - from.y), by);
  return { x: from.x + share * (to.x - from.x), y: from.y + share * (to.y - from.y) };
}

// what is drawn and listed: of one forest arcs from the threshold on, of two those that differ, or that both have
function chosenArcs(now, pinned, threshold) {
  const found = [];
  for (let parent = 0; parent < now.length; parent += 1) {
    for (let child = 0; child < now[0].length; child += 1) {
      const [share, before] = [now[parent][child], pinned ? pinned[parent][child] : 0];
      const change = share - before;
      const strength = pinned ? Math.abs(change) : share;
      if (strength >= threshold) {
        const kind = !pinned ? "plain" : change > 0 ? "more" : "less";
        found.push({ parent: parent - 1, child, share, before, strength, kind });
      } else if (pinned && Math.min(share, before) >= Math.max(threshold, 0.3)) {
        found.push({ parent: parent - 1, child, share, before, strength: Math.min(share, before), kind: "both" });
      }
    }
  }
  const rank = (arc) => (arc.kind === "both" ? arc.strength - 1 : arc.strength);
  return found.sort((a, b) => rank(b) - rank(a));
}

export class Forest {
  constructor(variables, go) {
    this.names = variables.map((variable) => variable.name);
    // arcs of what is measured from other variables are those of what that leaves
    this.shown = variables.map((variable) => (variable.measured_from ? `${variable.name} (rest)` : variable.name));
    this.from = variables.map((variable) => (variable.measured_from ? `, measured from ${variable.measured_from.join(", ")}` : ""));
    this.go = go;
    this.picture = document.getElementById("picture");
    this.table = document.getElementById("arcs");
    this.order = null;
    this.radius = RADIUS;
  }

  show(arcs, pinnedArcs, threshold, given) {
    const count = this.names.length;
    // places stay, so that one sees what changes
    this.order ??= orderOf(arcs, count);
    const now = matrixOf(arcs, count);
    const pinned = pinnedArcs ? matrixOf(pinnedArcs, count) : null;
    const chosen = chosenArcs(now, pinned, threshold);
    this.draw(chosen, now, given);
    this.list(chosen, pinned);
  }

  places() {
    const places = [];
    this.order.forEach((variable, position) => {
      const angle = angleOf(position, this.order.length);
      places[variable] = { angle, x: this.radius * Math.cos(angle), y: this.radius * Math.sin(angle) };
    });
    return places;
  }

  // the size of letters, with a circle and a frame that suit it; only what is in the page has a width
  fit(drawing) {
    const width = drawing.getBoundingClientRect().width;
    const narrow = width < NARROW;
    const apart = 1.25 * this.names.length; // of the letters' height: what labels take around the circle
    const [guess, small, large] = narrow ? [width / 5, 10, 13] : [RADIUS, 11, 15];
    const size = Math.max(small, Math.min(large, (2 * Math.PI * guess) / apart));
    const texts = this.order.map((variable) =>
      svg("text", { "font-size": size, "font-weight": 700 }, shortened(this.shown[variable])));
    drawing.append(...texts);
    const labels = texts.map((text, position) => {
      const angle = angleOf(position, texts.length);
      return { length: GAP + text.getComputedTextLength(), across: Math.abs(Math.cos(angle)), down: Math.abs(Math.sin(angle)) };
    });
    drawing.replaceChildren();
    const fitting = Math.min(...labels.map((one) => (width / 2 - size) / Math.max(one.across, 1e-9) - one.length));
    const least = Math.max(60, (0.85 * apart * size) / (2 * Math.PI));
    this.radius = narrow ? Math.max(least, Math.min(RADIUS, fitting)) : RADIUS;
    const [across, down] = ["across", "down"].map((way) =>
      Math.max(...labels.map((one) => Math.max(this.radius, (this.radius + one.length) * one[way]))) + size);
    const half = narrow ? across : Math.max(across, down);
    if (narrow) drawing.style.minWidth = `${2 * half}px`;
    drawing.setAttribute("viewBox", `${-half} ${-down} ${2 * half} ${2 * down}`);
    return size;
  }

  draw(chosen, now, given) {
    const drawing = svg("svg", { "aria-hidden": "true" });
    this.picture.replaceChildren(drawing);
    const size = this.fit(drawing);
    const places = this.places();
    const arcs = chosen.filter((arc) => arc.parent >= 0).reverse();
    const lines = arcs.map((arc) => this.arc(arc, places));
    drawing.append(svg("g", { class: "arcs" }, ...lines));
    const nodes = this.names.map((name, variable) => this.node(variable, places[variable], now[0][variable], given.has(name), size));
    nodes.forEach((node, variable) => {
      const light = (is) => {
        drawing.classList.toggle("lit", is);
        lines.forEach((line, place) =>
          line.classList.toggle("on", is && (arcs[place].parent === variable || arcs[place].child === variable)));
      };
      node.addEventListener("pointerenter", () => light(true));
      node.addEventListener("pointerleave", () => light(false));
      node.addEventListener("click", () => this.go(this.names[variable]));
    });
    drawing.append(...nodes);
  }

  node(variable, place, rooted, given, size) {
    const left = Math.cos(place.angle) < -1e-9;
    const degrees = (place.angle * 180) / Math.PI + (left ? 180 : 0);
    const text = svg("text", { x: left ? -GAP : GAP, dy: "0.35em", "text-anchor": left ? "end" : "start", "font-size": size,
      transform: `rotate(${degrees.toFixed(2)})` }, shortened(this.shown[variable]));
    const r = Math.min(6, (0.8 * Math.PI * this.radius) / this.names.length);
    const dot = svg("circle", { r });
    const core = svg("circle", { r, class: "rooted", "fill-opacity": rooted.toFixed(3) });
    const told = svg("title", {}, `${this.shown[variable]}: root with probability ${rooted.toFixed(2)}${this.from[variable]}`);
    const transform = `translate(${place.x.toFixed(1)} ${place.y.toFixed(1)})`;
    return svg("g", { class: given ? "node given" : "node", transform }, dot, core, text, told);
  }

  arc(arc, places) {
    const [from, to] = [places[arc.parent], places[arc.child]];
    const [across, down] = [to.x - from.x, to.y - from.y];
    const length = Math.hypot(across, down);
    // bent towards the centre; the two directions between a pair bend differently, to be told apart
    const bend = (arc.parent < arc.child ? 1 : 0.55) * Math.min(0.6, 0.2 + (0.6 * length) / this.radius);
    const middle = { x: ((from.x + to.x) / 2) * (1 - bend), y: ((from.y + to.y) / 2) * (1 - bend) };
    const width = 0.6 + 4.4 * arc.strength;
    const [tip, end] = [towards(to, middle, 7), towards(to, middle, 13 + width)];
    const half = (3 + 0.9 * width) / Math.max(Math.hypot(tip.x - end.x, tip.y - end.y), 1);
    const side = { x: half * (end.y - tip.y), y: half * (tip.x - end.x) };
    const head = [tip, { x: end.x + side.x, y: end.y + side.y }, { x: end.x - side.x, y: end.y - side.y }];
    const path = `M${written(from)}Q${written(middle)} ${written(end)}`;
    const before = arc.kind === "plain" ? "" : `, pinned ${arc.before.toFixed(2)}`;
    return svg("g", { class: `arc ${arc.kind}`, opacity: (0.25 + 0.75 * arc.strength).toFixed(3) },
      svg("path", { d: path, "stroke-width": width.toFixed(2) }),
      svg("polygon", { points: head.map(written).join(" ") }),
      svg("title", {}, `${this.shown[arc.parent]} → ${this.shown[arc.child]}: ${arc.share.toFixed(2)}${before}`));
  }

  list(chosen, pinned) {
    const heads = ["parent", "child", ...(pinned ? ["pinned", "now"] : ["probability"])];
    this.table.tHead.replaceChildren(element("tr", {}, ...heads.map((text) => element("th", { scope: "col" }, text))));
    const lines = chosen.map((arc) => {
      const numbers = pinned ? [arc.before, arc.share] : [arc.share];
      const cells = [label(this.shown, arc.parent), label(this.shown, arc.child), ...numbers.map((share) => share.toFixed(2))];
      return element("tr", { class: arc.kind }, ...cells.map((text) => element("td", {}, text)));
    });
    this.table.tBodies[0].replaceChildren(...lines);
  }
}
