"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const LABELS = {
  env: { "ebm-v1": "ebm-v1", "ebm-v2": "ebm-v2", "ebm-v3": "ebm-v3" },
  agents: { 2: "2 agents", 6: "6 agents" },
  scheme: { fed05: "fed05", fed10: "fed10", nofed: "nofed" },
  algo: Object.fromEntries(["ddpg", "td3", "tqc"].map((algo) => [algo, data.styles[algo].label])),
  preset: { published: "published", paper: "paper", corrected: "corrected" },
};
const EPISODE = ["target", "static", "limit", "model"].map((key) => ({ key, ...data.styles[key] }));

/* Elements */

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function svg(tag, attributes = {}, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function legend(place, entries) {
  place.replaceChildren(...entries.map(({ label, colour, dash, width = 2 }) => {
    const sample = svg("svg", { viewBox: "0 0 28 10", "aria-hidden": "true" });
    sample.append(svg("line", {
      x1: 0, x2: 28, y1: 5, y2: 5, stroke: colour, "stroke-width": width, "stroke-dasharray": dash ?? "",
    }));
    return element("span", {}, sample, label);
  }));
}

/* Numbers */

const minus = (text) => text.replace("-", "−");
const fixed = (value, digits) => minus(value.toFixed(digits));
const latitude = (x) => `${Math.abs(x).toFixed(x % 1 ? 1 : 0)}°${x < 0 ? "S" : x > 0 ? "N" : ""}`;

function ticksBetween(low, high, count) {
  const raw = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
  const ticks = [];
  for (let t = Math.ceil(low / step) * step; t <= high + step * 1e-9; t += step) ticks.push(t);
  return ticks;
}

function ticksOfDecades(low, high) {
  const ticks = [];
  for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++)
    for (const m of [1, 2, 5]) if (m * 10 ** e >= low && m * 10 ** e <= high) ticks.push(m * 10 ** e);
  return ticks;
}

/* Charts: curves over a common x, with a cross-hair that tells the figures. */

class Chart {
  constructor(place, { x, xTicks, xName, yRange, log = false, flip = false, digits = 1, unit = "" }) {
    Object.assign(this, { place, x, xTicks, xName, yRange, log, flip, digits, unit, series: [] });
    place.setAttribute("role", "img");
    place.setAttribute("aria-label", place.previousElementSibling.textContent);
    place.setAttribute("tabindex", "0");
    onPointer(place, (event) => this.point(event), () => this.leave());
    place.addEventListener("keydown", (event) => this.step(event));
    place.addEventListener("blur", () => { if (pointed?.place === place) leavePointed(); });
    new ResizeObserver(() => this.draw()).observe(place);
  }

  show(series, yRange = this.yRange) {
    this.series = series;
    this.yRange = yRange;
    this.draw();
  }

  draw() {
    const { width, height } = this.place.getBoundingClientRect();
    if (!width || !this.series.length) return;
    const box = { left: this.log ? 62 : 46, right: width - 14, top: 8, bottom: height - 22 };
    const scale = this.log ? Math.log : (v) => v;
    const [low, high] = this.yRange.map(scale);
    const [x0, x1] = [this.x[0], this.x[this.x.length - 1]];
    this.toX = (v) => box.left + ((v - x0) / (x1 - x0)) * (box.right - box.left);
    this.toY = (v) => {
      const part = Math.min(1.02, Math.max(-0.02, (scale(v) - low) / (high - low)));
      return this.flip ? box.top + part * (box.bottom - box.top) : box.bottom - part * (box.bottom - box.top);
    };
    const root = svg("svg", { viewBox: `0 0 ${width} ${height}` });
    const ticks = this.log ? ticksOfDecades(...this.yRange) : ticksBetween(...this.yRange, height / 34);
    const places = this.log ? 0 : Math.max(0, -Math.floor(Math.log10((ticks[1] - ticks[0]) * 1.0001)));
    for (const tick of ticks) {
      const y = this.toY(tick);
      root.append(svg("line", { class: "axis", x1: box.left, x2: box.right, y1: y, y2: y }));
      const text = this.log ? tick.toLocaleString("en") : fixed(tick, places);
      root.append(svg("text", { x: box.left - 5, y: y + 4, "text-anchor": "end" }, text));
    }
    for (const [value, text] of this.xTicks) {
      root.append(svg("text", { x: this.toX(value), y: height - 6, "text-anchor": "middle" }, text));
    }
    for (const { values, half, colour, dash, width: stroke } of this.series) {
      if (half) {
        const upper = values.map((v, i) => `${this.toX(this.x[i])},${this.toY(v + half[i])}`);
        const lower = values.map((v, i) => `${this.toX(this.x[i])},${this.toY(Math.max(v - half[i], 1))}`);
        const points = upper.concat(lower.reverse()).join(" ");
        root.append(svg("polygon", { points, fill: colour, opacity: 0.18 }));
      }
      root.append(svg("polyline", {
        points: Array.from(values, (v, i) => `${this.toX(this.x[i]).toFixed(1)},${this.toY(v).toFixed(1)}`).join(" "),
        fill: "none", stroke: colour, "stroke-width": stroke, "stroke-dasharray": dash ?? "",
        "stroke-linejoin": "round",
      }));
    }
    this.cross = svg("line", { class: "cross", y1: box.top, y2: box.bottom, visibility: "hidden" });
    root.append(this.cross);
    this.place.replaceChildren(root);
    if (this.pointer) this.point(this.pointer);
  }

  step(event) {
    if (event.key === "Escape") leavePointed();
    const by = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10, Home: -Infinity, End: Infinity }[event.key];
    if (by === undefined || !this.toX) return;
    event.preventDefault();
    const last = this.x.length - 1;
    const now = this.at === undefined ? (by > 0 ? -1 : last + 1) : this.at;
    const { left, top } = this.place.getBoundingClientRect();
    const x = this.toX(this.x[Math.min(last, Math.max(0, now + by))]);
    tell(this.place, () => this.point({ clientX: left + x, clientY: top }), () => this.leave());
  }

  point(event) {
    if (!this.toX) return;
    const at = event.clientX - this.place.getBoundingClientRect().left;
    let nearest = 0;
    this.x.forEach((value, i) => {
      if (Math.abs(this.toX(value) - at) < Math.abs(this.toX(this.x[nearest]) - at)) nearest = i;
    });
    this.at = nearest;
    this.pointer = { clientX: event.clientX, clientY: event.clientY };
    const x = this.toX(this.x[nearest]);
    this.cross.setAttribute("x1", x);
    this.cross.setAttribute("x2", x);
    this.cross.setAttribute("visibility", "visible");
    tooltip(this.pointer, this.xName(this.x[nearest]), this.series.map(({ label, values }) =>
      [label, `${this.log ? Math.round(values[nearest]).toLocaleString("en") : fixed(values[nearest], this.digits)} ${this.unit}`]));
  }

  leave() {
    this.pointer = null;
    this.cross?.setAttribute("visibility", "hidden");
  }
}

/* A mouse hovers; a finger taps, and the figures stay until it taps elsewhere. */
let pointed = null;  // the one place that tells its figures, and how to take leave of it
function onPointer(place, point, leave = () => {}) {
  const told = (event) => tell(place, () => point(event), leave);
  place.addEventListener("pointermove", told);
  place.addEventListener("pointerdown", told);
  place.addEventListener("pointerleave", (event) => {
    if (event.pointerType === "mouse" && pointed?.place === place) leavePointed();
  });
}

function tell(place, point, leave) {
  if (pointed?.place !== place) leavePointed();
  pointed = { place, leave };
  point();
}

function leavePointed() {
  pointed?.leave();
  pointed = null;
  byId("tooltip").hidden = true;
}

document.addEventListener("pointerdown", (event) => {
  if (!pointed?.place.contains(event.target)) leavePointed();
}, true);
addEventListener("scroll", leavePointed, { passive: true });  // what was pointed at is elsewhere now

function tooltip({ clientX, clientY }, title, rows) {
  const box = byId("tooltip");
  box.replaceChildren(element("b", {}, title), ...rows.map(([name, value]) =>
    element("div", {}, element("span", {}, name), element("span", {}, value))));
  box.hidden = false;
  const { width, height } = box.getBoundingClientRect();
  box.style.left = `${Math.max(4, Math.min(clientX + 14, innerWidth - width - 4))}px`;
  box.style.top = `${Math.max(4, clientY + 18 + height > innerHeight ? clientY - height - 12 : clientY + 18)}px`;
}

/* Episodes: 16-bit differences from step to step, low bytes before high ones, compressed. */

async function unpackSeries() {
  const coded = Uint8Array.from(atob(byId("series").textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([coded]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const number = bytes.length / 2;
  const units = new Int16Array(number);
  for (let i = 0; i < number; i++) units[i] = bytes[i] | (bytes[number + i] << 8);
  const size = data.latitudes.length, block = size * data.steps;
  for (let start = 0; start < number; start += block)
    for (let i = start + size; i < start + block; i++) units[i] += units[i - size];
  return units;
}

let units;
function atStep(series, quantity, step) {
  const size = data.latitudes.length;
  const start = ((series * data.units.length + quantity) * data.steps + step - 1) * size;
  return Array.from(units.subarray(start, start + size), (u) => u * data.units[quantity] + data.offsets[quantity]);
}

/* What is chosen */

const choice = { env: "ebm-v3", agents: 6, scheme: "fed05", algo: "ddpg", preset: "published" };

function find(wanted) {
  const single = wanted.env === "ebm-v1";
  return data.cells.find((c) => c.env === wanted.env && c.algo === wanted.algo && c.preset === wanted.preset
    && (single || (c.agents === wanted.agents && c.scheme === wanted.scheme)));
}

function choose(wanted) {
  Object.assign(choice, wanted);
  if (choice.algo === "ddpg" && choice.preset === "corrected") choice.preset = "paper";
  show();
}

function radios(name, labels, onChange) {
  const group = element("fieldset", {}, element("legend", {}, name));
  for (const [value, text] of Object.entries(labels)) {
    const input = element("input", { type: "radio", name, value });
    input.addEventListener("change", () => onChange(value));
    group.append(element("label", {}, input, text));
  }
  return group;
}

function makeChoice() {
  byId("choice").append(...Object.entries(LABELS).map(([name, labels]) =>
    radios(name, labels, (value) => choose({ [name]: name === "agents" ? Number(value) : value }))));
}

function showChoice() {
  for (const input of byId("choice").querySelectorAll("input")) {
    input.checked = String(choice[input.name]) === input.value;
    const alone = choice.env === "ebm-v1" && (input.name === "agents" || input.name === "scheme");
    input.disabled = alone || (input.value === "corrected" && choice.algo === "ddpg");
  }
}

/* Sections */

const LATITUDE_TICKS = [-60, -30, 0, 30, 60].map((v) => [v, latitude(v)]);
const wider = ([low, high]) => [low - 0.04 * (high - low), high + 0.04 * (high - low)];
const overLatitude = (id, options) => new Chart(byId(id),
  { x: data.latitudes, xTicks: LATITUDE_TICKS, xName: latitude, ...options });
const charts = {
  temperature: overLatitude("chart-temperature", { yRange: data.ranges.temperature, unit: "°C" }),
  error: overLatitude("chart-error", { yRange: [-30, 30], unit: "K", digits: 2 }),
  A: overLatitude("chart-A", { yRange: wider(data.ranges.A), unit: "W m⁻²" }),
  B: overLatitude("chart-B", { yRange: wider(data.ranges.B), unit: "W m⁻² K⁻¹", digits: 4 }),
};

function areaError(profile) {
  let sum = 0, weight = 0;
  profile.forEach((t, i) => {
    sum += data.weights[i] * (t - data.target[i]) ** 2;
    weight += data.weights[i];
  });
  return Math.sqrt(sum / weight);
}

function showEpisode(cell) {
  if (!units) return;
  const step = Number(byId("step").value);
  const told = `step ${step} of ${data.steps} (day ${Math.round(step * data.daysPerStep)})`;
  byId("step-output").textContent = told;
  byId("step").setAttribute("aria-valuetext", told);
  const places = { static: data.static.series, limit: data.references[cell.reference], model: cell.series };
  const shown = EPISODE.filter(({ key }) => key === "target" || places[key] !== undefined);
  const draw = (quantity) => shown.filter(({ key }) => key !== "target")
    .map((look) => ({ ...look, values: atStep(places[look.key], quantity, step) }));
  const profiles = draw(0);
  charts.temperature.show([{ ...EPISODE[0], values: data.target }, ...profiles]);
  const errors = profiles.map((one) => ({ ...one, values: one.values.map((t, i) => t - data.target[i]) }));
  const largest = Math.max(...errors.flatMap(({ values }) => values.map(Math.abs)));
  const bound = [5, 10, 20, 40, 80].find((b) => b >= largest) ?? 160;
  charts.error.show(errors, [-bound, bound]);
  charts.A.show(draw(1));
  charts.B.show(draw(2));
  legend(byId("episode-legend"), shown);
  byId("episode-error").textContent = "areaWRMSE of the globe at this step: "
    + profiles.map(({ label, values }) => `${label} ${areaError(values).toFixed(2)} K`).join(" · ")
    + (step === data.steps ? ` · mean of the seeds’ own errors ${cell.globe.toFixed(2)} K` : "");
}

function showSkill(cell) {
  const sources = [
    { ...data.styles.model, label: "ours", mean: cell.mean, std: cell.std, half: cell.half },
    ...(cell.published ? [{ ...data.styles.published, ...cell.published }] : []),
    { ...data.styles.static, mean: data.static.bands },
  ];
  legend(byId("skill-legend"), sources.map(({ label, colour }) => ({ label, colour, width: 9 })));
  const place = byId("chart-skill");
  const { width, height } = place.getBoundingClientRect();
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}` });
  const top = 1.05 * Math.max(...cell.seeds.flat(), ...sources.flatMap((s) => s.mean.map((m, i) => m + (s.half ? s.half[i] : 0))));
  const toY = (v) => height - 24 - (v / top) * (height - 34);
  for (const tick of ticksBetween(0, top, height / 50)) {
    root.append(svg("line", { class: "axis", x1: 34, x2: width, y1: toY(tick), y2: toY(tick) }));
    root.append(svg("text", { x: 29, y: toY(tick) + 4, "text-anchor": "end" }, String(tick)));
  }
  const room = (width - 40) / data.bands.length, bar = (0.78 * room) / sources.length;
  data.bands.forEach((band, i) => {
    const left = 40 + i * room + 0.11 * room;
    const name = width < 500 ? SHORT_BANDS[i] : band;
    root.append(svg("text", { x: left + 0.39 * room, y: height - 7, "text-anchor": "middle" }, name));
    sources.forEach((source, j) => {
      const x = left + j * bar, mid = x + bar / 2;
      root.append(svg("rect", { x: x + 1, width: bar - 2, y: toY(source.mean[i]), height: toY(0) - toY(source.mean[i]), fill: source.colour, opacity: 0.85 }));
      if (source.half) {
        const half = source.half[i];
        root.append(svg("line", { x1: mid, x2: mid, y1: toY(source.mean[i] - half), y2: toY(source.mean[i] + half), stroke: "var(--ink)", "stroke-width": 1.2 }));
      }
    });
    for (const seed of cell.seeds)
      root.append(svg("circle", { cx: left + 0.22 * bar, cy: toY(seed[i]), r: 2.6, fill: "var(--ink)", stroke: "var(--paper)", "stroke-width": 1 }));
    const [bestX, bestY] = [left + 0.78 * bar, toY(cell.seeds[cell.best][i])];
    root.append(svg("path", { class: "best", d: `M${bestX - 4},${bestY - 4}l8,8m0,-8l-8,8` }));
    const area = svg("rect", { x: left - 0.11 * room, width: room, y: 0, height, fill: "transparent" });
    onPointer(area, (event) => tooltip(event, band, sources.map((s) =>
      [s.label, `${s.mean[i].toFixed(2)}${s.std ? ` ± ${s.std[i].toFixed(2)}` : ""} K`])));
    root.append(area);
  });
  place.replaceChildren(root);

  const header = ["band", "ours (K)", "best seed", "static"];
  if (cell.published) header.push("published (K)", "difference (s.e.)", "Welch p");
  const best = cell.seeds[cell.best];
  byId("skill-table").replaceChildren(makeTable(header, data.bands.map((band, i) => {
    const row = [band, `${cell.mean[i].toFixed(2)} ± ${cell.std[i].toFixed(2)}`, best[i].toFixed(2), data.static.bands[i].toFixed(2)];
    if (cell.published) {
      const far = Math.abs(cell.published.errors[i]) > data.within;
      const difference = element("td", far ? { class: "far" } : {}, fixed(cell.published.errors[i], 1));
      row.push(`${cell.published.mean[i].toFixed(2)} ± ${cell.published.std[i].toFixed(2)}`, difference, String(cell.published.p[i]));
    }
    return row;
  })));
}

const SHORT_BANDS = ["90–60S", "60–30S", "30S–0", "0–30N", "30–60N", "60–90N"];
const sum = (values) => values.reduce((a, b) => a + b, 0);

let learning;
function showLearning(cell) {
  const of = (algo) => (algo === "ddpg" && choice.preset === "corrected" ? "paper" : choice.preset);
  const shown = Object.keys(LABELS.algo).map((algo) => find({ ...choice, algo, preset: of(algo) }))
    .filter(Boolean).map((c) => ({
      ...data.styles[c.algo], label: `${LABELS.algo[c.algo]}${c.preset === choice.preset ? "" : `, preset ${c.preset}`}`,
      values: c.loss, half: c.lossHalf, width: c === cell ? 2.6 : 1.3,
    }));
  const episodes = cell.loss.map((_, i) => i + 1);
  learning ??= new Chart(byId("chart-learning"), {
    x: episodes, xTicks: [1, 25, 50, 75, 100].map((e) => [e, e === 1 ? "episode 1" : String(e)]),
    xName: (e) => `episode ${e}`, log: true, flip: true, unit: "K²",
  });
  const all = shown.flatMap((s) => s.values);
  legend(byId("learning-legend"), shown);
  learning.show(shown, [0.8 * Math.min(...all), 1.2 * Math.max(...all)]);
}

/* Tables */

function makeTable(header, rows, groups = [], words = 1) {
  const head = element("thead");
  if (groups.length) head.append(element("tr", { class: "group" }, ...groups.map(([text, span]) => element("th", { colspan: span }, text))));
  head.append(element("tr", {}, ...header.map((text, i) => element("th", i && i < words ? { scope: "col", class: "word" } : { scope: "col" }, text))));
  const asCell = (value, i) => (value instanceof HTMLElement && value.tagName === "TD" ? value
    : i ? element("td", i < words ? { class: "word" } : {}, value) : element("th", { scope: "row" }, value));
  return element("table", {}, head, element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map(asCell)))));
}

function showTables() {
  for (const place of document.querySelectorAll("[data-table]")) {
    const { header, rows, groups, words } = data.tables[place.dataset.table];
    place.append(makeTable(header, rows, groups, words));
  }
  const minutes = sum(data.cells.map((c) => c.coreMinutes));
  byId("cost-summary").textContent = `${(minutes / 60).toFixed(1)} core-hours for ${data.cells.length} cells of ten seeds; `
    + `climlab and PyTorch would need ${data.publishedCoreHours.toFixed(0)}. Each of them`;
  const columns = [...new Set(data.cells.map((c) => `${c.algo} ${c.preset}`))].sort();
  const lines = [...new Set(data.cells.map((c) => (c.env === "ebm-v1" ? "ebm-v1" : `${c.env} a${c.agents} ${c.scheme}`)))].sort();
  byId("cell-table").append(makeTable(["", ...columns.map((c) => c.replace(/^\w+/, (a) => LABELS.algo[a]))], lines.map((line) => {
    const [env, agents, scheme] = line.split(" ");
    return [line, ...columns.map((column) => {
      const [algo, preset] = column.split(" ");
      const cell = find({ env, agents: Number(agents?.slice(1)), scheme, algo, preset });
      if (!cell) return "–";
      const button = element("button", { type: "button", title: cell.name }, `${cell.globe.toFixed(2)}, ${fixed(cell.share, 0)} %`);
      button.addEventListener("click", () => {
        choose({ env: cell.env, algo, preset, ...(env === "ebm-v1" ? {} : { agents: cell.agents, scheme: cell.scheme }) });
        byId("episode").querySelector("h2").focus({ preventScroll: true });
        byId("episode").scrollIntoView();
      });
      return element("td", {}, button);
    })];
  })));
}

const capital = (text) => text[0].toUpperCase() + text.slice(1);
const KINDS = {
  holds: "holds", "points that way": "points", "holds in part": "partly", "does not hold": "fails",
  mixed: "undecided", "not decided by ten seeds": "undecided",
};
const kindOf = (found) => (found && KINDS[found[0]]) ?? "open";
const CLAIMS = { all: "all", holds: "hold", points: "point that way", partly: "in part", fails: "fail", undecided: "undecided", open: "not run" };
function showClaims() {
  const verdict = (who, found) => element("div", { class: "verdict" }, element("span", {}, who),
    element("b", { class: kindOf(found) }, found ? found[0] : "no figures"));
  const cards = data.claims.map((claim) => element("li", {},
    element("p", {}, claim.statement), verdict(claim.beside, claim.published),
    ...Object.entries(claim.byPreset).map(([preset, found]) => verdict(`ours (${preset})`, found)),
    element("details", {}, element("summary", {}, "How it was decided"),
      element("div", {}, `${claim.test}.`),
      ...Object.entries(claim.byPreset).map(([preset, found]) => element("div", {}, `Ours, ${preset}: ${found[1]}.`)),
      element("div", {}, claim.published ? `${capital(claim.beside)}: ${claim.published[1]}.` : ""))));
  byId("claim-list").append(...cards);
  const belongs = (claim, kind) => kind === "all" || kindOf(claim.ours) === kind;
  const count = (kind) => data.claims.filter((claim) => belongs(claim, kind)).length;
  const labels = Object.entries(CLAIMS).filter(([kind]) => count(kind)).map(([kind, text]) => [kind, `${text} ${count(kind)}`]);
  byId("claim-choice").append(radios("claims by our verdict", Object.fromEntries(labels), (kind) =>
    cards.forEach((card, i) => { card.hidden = !belongs(data.claims[i], kind); })));
  byId("claim-choice").querySelector("input").checked = true;
  const run = count("all") - count("open");
  const agreement = Object.entries(data.agreement).map(([preset, { done, cells, within, rejected, byChance, means }]) =>
    `With preset ${preset}, of which ${done} of ${cells} cells are there, ${within} of ${means} means lie within three standard errors `
    + `of the published ones; Welch’s test at 5 % rejects ${rejected}, where ${byChance.toFixed(1)} are expected by chance. `).join("");
  byId("summary").textContent = `FedRAIN-Lite’s experiments, reproduced from scratch: ${data.cells.length} of ${data.total} cells, `
    + `ten seeds each. ${agreement}Of the paper’s ${count("all")} claims ${count("open") ? `${run} can be judged so far: ` : ""}`
    + `${count("holds")} hold in our figures, those of preset published where all cells of a claim are there; ${count("points")} agree in direction but not significantly; ${count("partly")} hold in part; `
    + `${count("fails")} ${count("fails") === 1 ? "does" : "do"} not hold; ${count("undecided")} are mixed or not decided.`;
  byId("footer").textContent = `Made by fedrain benchmark report. ${Object.entries(data.versions).map(([k, v]) => `${k} ${v}`).join(", ")}.`;
}

/* All together */

function show() {
  const cell = find(choice);
  showChoice();
  const names = document.querySelectorAll(".cell-name");
  for (const name of names) name.textContent = cell ? cell.name : "a cell that is not finished";
  for (const id of ["episode", "skill", "learning"])
    for (const part of byId(id).children) if (part.tagName !== "H2") part.hidden = !cell;
  if (!cell) return;
  showEpisode(cell);
  showSkill(cell);
  showLearning(cell);
}

let playing = null;
function play() {
  const slider = byId("step");
  if (playing) {
    clearInterval(playing);
    playing = null;
  } else {
    if (Number(slider.value) >= data.steps) slider.value = 1;
    playing = setInterval(() => {
      slider.value = Number(slider.value) + 1;
      if (Number(slider.value) >= data.steps) play();
      const cell = find(choice);
      if (cell) showEpisode(cell);
    }, 60);
  }
  byId("play").textContent = playing ? "❚❚" : "▶";
  byId("play").setAttribute("aria-label", playing ? "Pause" : "Play");
}

async function start() {
  makeChoice();
  showClaims();
  showTables();
  byId("step").max = data.steps;
  byId("step").value = data.steps;
  try {
    units = await unpackSeries();
  } catch (error) {
    byId("episode-error").textContent = `This browser cannot unpack the episodes (${error.message}).`;
    byId("play").disabled = byId("step").disabled = true;
  }
  if (!find(choice)) choice.preset = "paper";
  if (!find(choice)) {
    const { env, agents, scheme, algo, preset } = data.cells[0];
    Object.assign(choice, { env, algo, preset, ...(env === "ebm-v1" ? {} : { agents, scheme }) });
  }
  byId("step").addEventListener("input", () => { const cell = find(choice); if (cell) showEpisode(cell); });
  byId("play").addEventListener("click", play);
  addEventListener("resize", () => { const cell = find(choice); if (cell) showSkill(cell); });
  show();
  document.body.dataset.ready = "true";
}

start();
