// A box a variable: its values as buttons with bars, or the density of a number.

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export function percent(share) {
  const shown = 100 * share;
  return shown > 0 && shown < 0.05 ? "<0.1" : shown < 100 && shown > 99.95 ? ">99.9" : shown.toFixed(1);
}

function number(value, digits = 4) {
  return String(Number(value.toPrecision(digits)));
}

function badge(box, text, kind) {
  box.badge.textContent = text;
  box.badge.className = `badge ${kind}`;
}

class Box {
  constructor(variable) {
    this.name = variable.name;
    this.title = element("h3", { title: variable.name }, variable.name);
    this.badge = element("span", { class: "badge" });
    const head = element("div", { class: "head" }, this.title, this.badge);
    this.root = element("article", { class: "box", role: "group", "aria-label": variable.name, tabindex: "-1" }, head);
  }

  mark(kind, is) {
    this.root.classList.toggle(kind, is);
  }
}

class DiscreteBox extends Box {
  constructor(variable, choose) {
    super(variable);
    this.values = variable.values;
    this.bars = variable.values.map((value, place) => {
      const bar = {
        fill: element("span", { class: "fill" }),
        error: element("span", { class: "error" }),
        pinned: element("span", { class: "pinned", hidden: "" }),
        star: element("span", { class: "star", hidden: "" }, "★"),
        share: element("span", { class: "share" }, "–"),
      };
      const track = element("span", { class: "track" }, bar.fill, bar.error, bar.pinned);
      bar.button = element("button", { type: "button", class: "bar", "aria-pressed": "false", title: value },
        element("span", { class: "value" }, value, bar.star), track, bar.share);
      bar.button.tabIndex = place === 0 ? 0 : -1;
      bar.button.addEventListener("click", () => choose(this.name, value));
      return bar;
    });
    const list = element("div", { class: "values" }, ...this.bars.map((bar) => bar.button));
    list.addEventListener("keydown", (event) => this.walk(event));
    list.addEventListener("focusin", (event) => {
      for (const bar of this.bars) bar.button.tabIndex = bar.button === event.target ? 0 : -1;
    });
    this.root.append(list);
  }

  walk(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const place = this.bars.findIndex((bar) => bar.button === event.target);
    const next = this.bars[place + step];
    if (next) next.button.focus();
    event.preventDefault();
  }

  matches(words) {
    return [this.name, ...this.values].some((text) => text.toLowerCase().includes(words));
  }

  show(posterior, given, exact) {
    const largest = posterior ? Math.max(...posterior.standard_errors) : 0;
    if (given !== undefined) badge(this, "given", "given");
    else if (exact) badge(this, "exact", "exact");
    else badge(this, `±${percent(largest)}`, "sampled");
    this.values.forEach((value, place) => {
      const share = posterior ? posterior.probabilities[place] : Number(value === given);
      const error = posterior ? posterior.standard_errors[place] : 0;
      this.draw(this.bars[place], value, share, error, value === given, exact || given !== undefined);
    });
  }

  draw(bar, value, share, error, pressed, exact) {
    bar.fill.style.width = `${100 * share}%`;
    const [low, high] = [Math.max(0, share - error), Math.min(1, share + error)];
    bar.error.hidden = exact || error === 0;
    bar.error.style.left = `${100 * low}%`;
    bar.error.style.width = `${100 * (high - low)}%`;
    bar.share.textContent = percent(share);
    bar.button.setAttribute("aria-pressed", String(pressed));
    const sure = exact ? "exact" : `standard error ${percent(error)}`;
    bar.button.setAttribute("aria-label", pressed ? `${value}: given` : `${value}: ${percent(share)} percent, ${sure}`);
    bar.button.title = pressed ? `${value}: given; click to clear` : `${value}: ${percent(share)} %, ${sure}`;
  }

  showPinned(posterior, given) {
    this.values.forEach((value, place) => {
      const bar = this.bars[place];
      bar.pinned.hidden = !posterior && given === undefined;
      bar.pinned.style.left = `${100 * (posterior ? posterior.probabilities[place] : Number(value === given))}%`;
    });
  }

  showComplete(value) {
    this.values.forEach((known, place) => { this.bars[place].star.hidden = known !== value; });
  }
}

const [WIDTH, HEIGHT] = [200, 56];

class ContinuousBox extends Box {
  constructor(variable, choose) {
    super(variable);
    this.ends = variable.ends;
    this.curve = svg("path", { class: "density" });
    this.pinned = svg("path", { class: "density pinned-density" });
    this.line = svg("line", { class: "mean", y1: 0, y2: HEIGHT });
    this.picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", class: "curve", role: "img" },
      this.pinned, this.curve, this.line);
    this.text = element("p", { class: "numbers" });
    this.best = element("p", { class: "numbers", hidden: "" });
    this.input = element("input", { type: "text", inputmode: "decimal", autocomplete: "off", "aria-label": `Set ${this.name} to`,
      placeholder: "set to a number" });
    this.input.addEventListener("change", () => choose(this.name, this.input.value.trim() || undefined));
    this.root.append(this.picture, this.text, this.best, this.input);
  }

  matches(words) {
    return this.name.toLowerCase().includes(words);
  }

  path(posterior, top, [low, high]) {
    const points = posterior.grid.map((x, place) =>
      `${(WIDTH * (x - low) / (high - low)).toFixed(1)},${(HEIGHT * (1 - 0.94 * posterior.density[place] / top)).toFixed(1)}`);
    const [first, last] = [points[0].split(",")[0], points.at(-1).split(",")[0]];
    return `M${first},${HEIGHT}L${points.join("L")}L${last},${HEIGHT}Z`;
  }

  show(posterior, given, exact) {
    this.posterior = posterior;
    this.input.value = given ?? "";
    if (given !== undefined) badge(this, "given", "given");
    else if (exact) badge(this, "exact", "exact");
    else badge(this, `±${number(posterior.standard_error, 2)}`, "sampled");
    this.given = given;
    this.text.textContent = posterior
      ? `${number(posterior.mean)}, 90 %: ${number(posterior.low)} to ${number(posterior.high)}` : `= ${given}`;
    this.redraw();
  }

  redraw() {
    const curves = [this.posterior, this.pinnedPosterior].filter(Boolean);
    const at = this.posterior ? this.posterior.mean : Number(this.given);
    const all = [...this.ends, at, ...curves.flatMap((one) => [one.grid[0], one.grid.at(-1)])].filter(Number.isFinite);
    const ends = [Math.min(...all), Math.max(...all)];
    const top = Math.max(...curves.flatMap((one) => one.density), 1e-300);
    this.curve.setAttribute("d", this.posterior ? this.path(this.posterior, top, ends) : "");
    this.pinned.setAttribute("d", this.pinnedPosterior ? this.path(this.pinnedPosterior, top, ends) : "");
    const place = WIDTH * (at - ends[0]) / (ends[1] - ends[0]);
    this.line.setAttribute("x1", place || 0);
    this.line.setAttribute("x2", place || 0);
    this.picture.setAttribute("aria-label", `${this.name}: ${this.text.textContent}`);
  }

  showPinned(posterior) {
    this.pinnedPosterior = posterior;
    this.redraw();
  }

  showComplete(value) {
    this.best.hidden = value === undefined;
    this.best.textContent = value === undefined ? "" : `★ ${number(Number(value))}`;
  }
}

export function makeBox(variable, choose) {
  return variable.kind === "continuous" ? new ContinuousBox(variable, choose) : new DiscreteBox(variable, choose);
}
