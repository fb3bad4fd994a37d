/* Episodes: 16-bit differences from row to row, low bytes before high ones, compressed. */

let units, starts;
async function unpackSeries() {
  const coded = Uint8Array.from(atob(byId("series").textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([coded]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const number = bytes.length / 2;
  const found = new Int16Array(number);
  for (let i = 0; i < number; i++) found[i] = bytes[i] | (bytes[number + i] << 8);
  let at = 0;
  starts = data.blocks.map(([rows, columns]) => {
    const begin = at;
    at += rows * columns;
    for (let i = begin + columns; i < at; i++) found[i] += found[i - columns];
    return begin;
  });
  return found;
}

function rowOf(block, row) {
  const [, columns, unit, zero] = data.blocks[block], begin = starts[block] + row * columns;
  return Array.from(units.subarray(begin, begin + columns), (u) => u * unit + zero);
}

function columnOf(block, column) {
  const [rows, columns, unit, zero] = data.blocks[block];
  return Array.from({ length: rows }, (_, i) => units[starts[block] + i * columns + column] * unit + zero);
}

/* What is chosen: one cell, perhaps another beside it, and a step of the episode. The address holds it. */

const KEYS = ["env", "agents", "scheme", "algo", "preset"];
const state = { cell: null, other: null, step: data.steps };
const OPTIONS = {
  env: [["ebm-v1", "ebm-v1"], ["ebm-v2", "ebm-v2"], ["ebm-v3", "ebm-v3"]],
  agents: [["2", "2 agents"], ["6", "6 agents"]],
  scheme: ["fed05", "fed10", "nofed"].map((s) => [s, s]),
  algo: ALGORITHMS.map((algo) => [algo, label(algo)]),
  preset: data.presets.map((preset) => [preset, preset]),
};
const NAMES = { env: "environment", agents: "agents", scheme: "averaging", algo: "algorithm", preset: "preset" };

const parts = (cell) => ({ ...Object.fromEntries(KEYS.map((k) => [k, String(cell[k])])), name: cell.name });
const find = (wanted) => data.cells.find((c) => c.env === wanted.env && c.algo === wanted.algo && c.preset === wanted.preset
  && (wanted.env === "ebm-v1" || (String(c.agents) === wanted.agents && c.scheme === wanted.scheme)));

function readAddress() {
  const told = new URLSearchParams(location.hash.slice(1));
  const first = cellNamed(told.get("cell")) ?? cellNamed(data.leading);
  const step = Number(told.get("step"));
  const other = cellNamed(told.get("other"));
  return { cell: parts(first), other: other ? parts(other) : null, step: step >= 1 && step <= data.steps ? Math.round(step) : data.steps };
}

function writeAddress() {
  const told = new URLSearchParams();
  const [cell, other] = [find(state.cell), state.other && find(state.other)];
  if (cell) told.set("cell", cell.name);
  if (other) told.set("other", other.name);
  if (state.step !== data.steps) told.set("step", state.step);
  history.replaceState(null, "", `#${told}`);
}

function makeChoice(place, which) {
  for (const key of KEYS) {
    const select = element("select", { name: key, "aria-label": `${which === "other" ? "other cell: " : ""}${NAMES[key]}` },
      ...OPTIONS[key].map(([value, text]) => element("option", { value }, text)));
    select.addEventListener("change", () => {
      Object.assign(state[which], { [key]: select.value });
      if (state[which].algo === "ddpg" && state[which].preset === "corrected") state[which].preset = "paper";
      show();
      writeAddress();
    });
    place.append(select);
  }
  if (which === "cell") return;
  const none = element("button", { type: "button", class: "plain" }, "Remove");
  none.addEventListener("click", () => { state.other = null; show(); writeAddress(); byId("compare").focus(); });
  place.append(none);
}

function showChoice(place, which) {
  const wanted = state[which];
  place.hidden = !wanted;
  if (!wanted) return;
  for (const select of place.querySelectorAll("select")) {
    select.disabled = wanted.env === "ebm-v1" && (select.name === "agents" || select.name === "scheme");
    if (wanted[select.name] === undefined || (select.disabled && !OPTIONS[select.name].some(([v]) => v === wanted[select.name])))
      wanted[select.name] = OPTIONS[select.name].at(-1)[0];
    select.value = wanted[select.name];
    for (const option of select.options)  // what is not there is said, and can be chosen all the same
      option.textContent = OPTIONS[select.name].find(([v]) => v === option.value)[1]
        + (find({ ...wanted, [select.name]: option.value }) ? "" : " (not there)");
  }
}

function openCell(name) {
  state.cell = parts(cellNamed(name));
  show();
  writeAddress();
  byId("choice").querySelector("select").focus({ preventScroll: true });
  byId("climate").scrollIntoView();
}

/* Charts of the chosen cell. Axes are the same for every cell and step. */

const LATITUDE_TICKS = [-60, -30, 0, 30, 60].map((v) => [v, latitude(v)]);
const wider = ([low, high]) => [low - 0.04 * (high - low), high + 0.04 * (high - low)];
const overLatitude = (id, options) => new Chart(byId(id),
  { x: data.latitudes, xTicks: LATITUDE_TICKS, xName: latitude, file: id.replace("chart", "episode"), ...options });
const day = (step) => Math.round(step * data.daysPerStep);
const steps = Array.from({ length: data.steps }, (_, i) => i + 1);
const overTime = (id, options) => new Chart(byId(id), {
  x: steps, xTicks: [50, 100, 150].map((s) => [s, `day ${day(s)}`]), xName: (s) => `day ${day(s)} (step ${s})`, file: id.replace("chart", "episode"), ...options,
});
const losses = data.cells.flatMap((c) => [Math.max(...c.loss), Math.min(...c.loss), ...c.ends]);
const charts = {
  temperature: overLatitude("chart-temperature", { yRange: data.ranges.temperature, unit: "°C" }),
  error: overLatitude("chart-error", { yRange: [-50, 50], scale: "root", unit: "K", digits: 2 }),
  A: overLatitude("chart-A", { yRange: wider(data.ranges.A), unit: "W m⁻²" }),
  B: overLatitude("chart-B", { yRange: wider(data.ranges.B), unit: "W m⁻² K⁻¹", digits: 4 }),
  longwave: overLatitude("chart-longwave", { yRange: [0, 450], unit: "W m⁻²" }),
  D: overTime("chart-D", { yRange: wider(data.ranges.D), unit: "W m⁻² K⁻¹", digits: 3 }),
  a0: overTime("chart-a0", { yRange: wider(data.ranges.a0), digits: 3 }),
  a2: overTime("chart-a2", { yRange: wider(data.ranges.a2), digits: 3 }),
  learning: new Chart(byId("chart-learning"), {
    x: Array.from({ length: data.episodes }, (_, i) => i + 1), file: "learning",
    xTicks: [25, 50, 75].map((e) => [e, `day ${day(e * data.steps).toLocaleString("en")}`]), xName: (e) => `episode ${e} (day ${day(e * data.steps).toLocaleString("en")})`,
    scale: "log", flip: true, unit: "K²", yRange: [Math.min(...losses) / 1.15, Math.max(...losses) * 1.15],
  }),
};
byId("chart-skill").previousElementSibling.append(" ", offerDrawing(byId("chart-skill"), "skill", "Skill by band"));

function areaError(profile) {
  return Math.sqrt(sum(profile.map((t, i) => data.weights[i] * (t - data.target[i]) ** 2)) / sum(data.weights));
}

/* The static model, optimal control, the chosen cell, and perhaps another: what is drawn of each. */
function drawn(cell, other) {
  const limit = data.references[cell.reference];
  return [
    { ...data.styles.static, source: data.static.series },
    ...(limit ? [{ ...data.styles.limit, source: limit.series }] : []),
    { ...data.styles.model, label: other ? cell.name : data.styles.model.label, source: cell.series, cell },
    ...(other ? [{ ...data.styles.compared, label: other.name, source: other.series, cell: other }] : []),
  ];
}

function showEpisode(cell, other) {
  if (!units || !cell) return;
  const { step } = state, last = step === data.steps;
  const told = `day ${day(step)} (step ${step} of ${data.steps})`;
  byId("step").value = step;
  byId("step-output").textContent = told;
  byId("step").setAttribute("aria-valuetext", told);
  const shown = drawn(cell, other), target = data.styles.target;
  const of = (name) => shown.map((one) => ({ ...one, values: rowOf(one.source[name], step - 1) }));
  const seeds = (c) => (c && last ? c.numbers.map((_, i) => columnOf(c.profiles, i)) : []);
  const profiles = of("surface_temperature").map((one) => ({ ...one, each: seeds(one.cell) }));
  const off = (values) => values.map((t, i) => t - data.target[i]);
  charts.temperature.show([{ ...target, values: data.target }, ...profiles]);
  charts.error.show(profiles.map((one) => ({ ...one, values: off(one.values), each: one.each.map(off) })));
  const [A, B] = [of("A"), of("B")];
  charts.A.show(A);
  charts.B.show(B);
  charts.longwave.show([{ ...target, label: "reanalysis", values: data.longwave },
    ...A.map((one, j) => ({ ...one, values: one.values.map((a, i) => a + B[j].values[i] * profiles[j].values[i]) }))]);
  for (const name of ["D", "a0", "a2"]) {
    charts[name].now = step;
    charts[name].show(shown.map((one) => ({ ...one, values: columnOf(one.source[name], 0) })));
  }
  legend(byId("episode-legend"), [target, ...shown]);
  byId("episode-error").textContent = "areaWRMSE of the globe at this step: "
    + profiles.map((one) => `${one.label} ${areaError(one.values).toFixed(2)} K`
      + (last && one.cell ? ` (mean of the seeds’ own errors ${one.cell.globe.toFixed(2)} K)` : "")).join(" · ");
}

const SHORT_BANDS = ["90–60S", "60–30S", "30S–0", "0–30N", "30–60N", "60–90N"];
const allErrors = data.cells.flatMap((c) => c.seeds.flat());
const ERRORS = [Math.min(...allErrors) / 1.2, Math.max(...allErrors) * 1.1];

function showSkill(cell, other) {
  const limit = data.references[cell.reference];
  const sources = [
    { ...data.styles.model, label: other ? cell.name : "ours", shape: "circle", ...cell },
    ...(other ? [{ ...data.styles.compared, label: other.name, shape: "square", ...other }] : []),
    ...(cell.published ? [{ ...data.styles.published, shape: "diamond", ...cell.published }] : []),
  ];
  const levels = [{ ...data.styles.static, bands: data.static.bands }, ...(limit ? [{ ...data.styles.limit, bands: limit.bands }] : [])];
  const place = byId("chart-skill");
  const { width, height } = place.getBoundingClientRect();
  if (width) {
    const root = svg("svg", { viewBox: `0 0 ${width} ${height}` });
    const [low, high] = ERRORS.map(Math.log), lowest = height - 24;
    const toY = (v) => Math.min(lowest, lowest - ((Math.log(Math.max(v, 1e-3)) - low) / (high - low)) * (lowest - 10));
    for (const tick of ticksOfDecades(...ERRORS)) {
      root.append(svg("line", { class: "axis", x1: 34, x2: width, y1: toY(tick), y2: toY(tick) }));
      root.append(svg("text", { x: 29, y: toY(tick) + 4, "text-anchor": "end" }, String(tick)));
    }
    const room = (width - 40) / data.bands.length;
    data.bands.forEach((band, i) => {
      const left = 40 + i * room;
      root.append(svg("text", { x: left + room / 2, y: height - 7, "text-anchor": "middle" }, width < 560 ? SHORT_BANDS[i] : band));
      for (const { bands, colour, dash } of levels)
        root.append(svg("line", { x1: left + 4, x2: left + room - 4, y1: toY(bands[i]), y2: toY(bands[i]), stroke: colour, "stroke-width": 1.6, "stroke-dasharray": dash }));
      sources.forEach((source, j) => {
        const x = left + (room * (j + 1)) / (sources.length + 1), y = toY(source.mean[i]);
        for (const seed of source.seeds ?? []) root.append(svg("circle", { class: "seed", cx: x - 6, cy: toY(seed[i]), r: 2, fill: source.colour, opacity: 0.6 }));
        root.append(svg("line", { x1: x, x2: x, y1: toY(source.mean[i] - source.half[i]), y2: toY(source.mean[i] + source.half[i]), stroke: source.colour, "stroke-width": 2 }));
        root.append(mark(source.shape, x, y, 4, { fill: source.colour, stroke: "var(--ink)", "stroke-width": 0.8 }));
      });
      const area = svg("rect", { x: left, width: room, y: 0, height, fill: "transparent" });
      onPointer(area, (event) => tooltip(event, band, [...sources.map((s) =>
        [s.label, `${s.mean[i].toFixed(2)} ± ${s.std[i].toFixed(2)} K`]), ...levels.map((l) => [l.label, `${l.bands[i].toFixed(2)} K`])]));
      root.append(area);
    });
    place.setAttribute("role", "img");
    place.setAttribute("aria-label", "Skill by band: the table below has the numbers.");
    place.replaceChildren(root);
  }
  const header = ["areaWRMSE (K), mean ± std", "static", other ? cell.name : "ours", ...(other ? [other.name] : []),
    ...(cell.published ? ["published", "difference in s.e.", "Welch p"] : []), ...(limit ? ["optimal control"] : [])];
  byId("skill-table").replaceChildren(makeTable(header, data.bands.map((band, i) => {
    const told = (s) => `${s.mean[i].toFixed(2)} ± ${s.std[i].toFixed(2)}`;
    const row = [band, data.static.bands[i].toFixed(2), told(cell), ...(other ? [told(other)] : [])];
    if (cell.published) {
      const errors = cell.published.errors[i];
      row.push(told(cell.published), element("td", Math.abs(errors) > 3 ? { class: "far" } : {}, fixed(errors, 1)), String(cell.published.p[i]));
    }
    if (limit) row.push(limit.bands[i].toFixed(2));
    return row;
  })));
}

function showLearning(cell, other) {
  const curve = (c, look, name) => ({ ...look, label: name, values: c.loss, half: c.lossHalf });
  charts.learning.show([curve(cell, data.styles.model, other ? cell.name : "ours"), ...(other ? [curve(other, data.styles.compared, other.name)] : [])],
    [{ ...data.styles.static, value: cell.ends[0] }, { ...data.styles.limit, value: cell.ends[1] }]);
}

function show() {
  showChoice(byId("choice"), "cell");
  showChoice(byId("choice-other"), "other");
  const cell = find(state.cell), other = state.other && find(state.other);
  byId("compare").setAttribute("aria-expanded", String(Boolean(state.other)));
  byId("compare").hidden = Boolean(state.other);
  document.querySelector(".now").textContent = cell ? `of ${cell.name}${other ? ` and ${other.name}` : ""}` : "";
  for (const part of byId("climate").children)
    if (!part.matches(".choice, .player")) part.hidden = !cell && part.id !== "episode-error";
  if (!cell) {
    byId("episode-error").textContent = "This cell is not trained yet.";
    return;
  }
  showEpisode(cell, other);
  showSkill(cell, other);
  showLearning(cell, other);
}

let playing = null;
function play() {
  if (playing) {
    clearInterval(playing);
    playing = null;
    writeAddress();
  } else {
    if (state.step >= data.steps) state.step = 1;
    playing = setInterval(() => {
      state.step += 1;
      if (state.step >= data.steps) play();
      showEpisode(find(state.cell), state.other && find(state.other));
    }, 60);
  }
  byId("play").textContent = playing ? "❚❚" : "▶";
  byId("play").setAttribute("aria-label", playing ? "Pause" : "Play");
}
