/* The four questions: each figure shows what stands for the paper's experiments. */

const globes = reproductions.flatMap((c) => c.globes);
const bestLimit = Math.min(...Object.values(data.references).map((r) => r.globe), data.baselines.proportional.error);
const GLOBE = [Math.min(bestLimit, ...globes) / 1.15, Math.max(...globes) * 1.1];
const levelOf = (key, value) => ({ ...data.styles[key], value });
const seedsOf = (cell, look, more = {}) =>
  ({ ...look, name: look.label, seeds: cell.globes, mean: cell.globe, half: cell.globeHalf, ...more });
const MARKS = { seed: "a seed", mean: "mean and its 95 % interval (Student’s t)" };
const COMMON = () => [
  levelOf("static", data.static.globe),
  levelOf("proportional", data.baselines.proportional.error),
  ...(data.references["limit-shared"] ? [levelOf("limit", data.references["limit-shared"].globe)] : []),
];
/* Which preset each of them is of, where they differ. */
function presetsOf(shown) {
  const found = [...new Set(shown.map((c) => c.preset))];
  return found.length === 1 ? `preset ${found[0]}` : `presets ${found.join(" and ")}`;
}

/* Rows by division of the globe; marks are one for each cell of the row. */
function byDivision(shown, rowOf) {
  const groups = [...new Set(shown.map(division))].sort();
  return groups.map((name) => ({ title: name === "ebm-v1" ? "" : name, rows: rowOf(shown.filter((c) => division(c) === name)) }));
}

function showFederation() {
  const place = byId("federation-figure"), model = data.styles.model;
  for (const algo of ALGORITHMS) {
    const shown = data.byScheme.map(cellNamed).filter((c) => c.algo === algo);
    if (!shown.length) continue;
    rowsFigure(place, {
      title: `${label(algo)}, ${presetsOf(shown)}: areaWRMSE of the globe (K)`, file: `federation-${algo}`, scale: "log", range: GLOBE, lines: COMMON(),
      groups: byDivision(shown, (cells) => cells.map((c) => ({
        label: c.env === "ebm-v1" ? "ebm-v1" : c.scheme, title: c.name, cell: c.name,
        marks: [seedsOf(c, model, { name: "ours", shape: "circle", hollow: c.scheme === "nofed" })],
      }))),
    });
  }
  legend(byId("federation-legend"), [
    { label: "averaged, mean and its 95 % interval (Student’s t)", colour: model.colour, shape: "circle" },
    { label: "never averaged, or alone", colour: model.colour, shape: "circle", hollow: true },
    { label: MARKS.seed, colour: model.colour, shape: "circle", dot: true }, ...COMMON(),
  ]);
}

function showAlgorithm() {
  const rows = (cells) => [...new Set(cells.map(experiment))].map((name) => {
    const own = cells.filter((c) => experiment(c) === name);
    return {
      label: own[0].env === "ebm-v1" ? "ebm-v1" : own[0].scheme, title: `${name}, ${presetsOf(own)}`, cell: own[0].name,
      marks: ALGORITHMS.flatMap((algo) => own.filter((c) => c.algo === algo)).map((c) => seedsOf(c, data.styles[c.algo], { shape: SHAPES[c.algo] })),
    };
  });
  const every = data.byAlgorithm.map(cellNamed);
  rowsFigure(byId("algorithm-figure"), {
    title: `areaWRMSE of the globe (K), ${presetsOf(every)}`, file: "algorithms", scale: "log", range: GLOBE, lines: COMMON(), rowHeight: 34,
    groups: byDivision(every, rows),
  });
  legend(byId("algorithm-legend"), [
    ...ALGORITHMS.map((algo) => ({ ...data.styles[algo], shape: SHAPES[algo], label: `${label(algo)}, ${MARKS.mean}` })).slice(0, 1),
    ...ALGORITHMS.slice(1).map((algo) => ({ ...data.styles[algo], shape: SHAPES[algo] })),
    { label: MARKS.seed, colour: "var(--soft)", shape: "circle", dot: true }, ...COMMON(),
  ]);
}

function showLimit() {
  const known = data.baselines;
  const limit = data.references["limit-shared"];
  const alone = (key, mean) => ({
    label: label(key), title: label(key), marks: [{ ...data.styles[key], name: label(key), mean, shape: "diamond" }],
  });
  const rows = [
    alone("static", known.static.error),
    ...data.best.map(({ name }) => cellNamed(name)).sort((a, b) => b.globe - a.globe).map((c) => ({
      label: `best of ${label(c.algo)}`, title: c.name, cell: c.name, marks: [seedsOf(c, data.styles[c.algo], { shape: SHAPES[c.algo] })],
    })),
    alone("proportional", known.proportional.error), ...(limit ? [alone("limit", limit.globe)] : []),
  ];
  const most = Math.max(...rows.flatMap((r) => r.marks.flatMap((m) => m.seeds ?? [m.mean])));
  rowsFigure(byId("limit-figure"), {
    title: "areaWRMSE of the globe (K): each algorithm in the experiment in which its mean is lowest", file: "limit",
    range: [0, Math.ceil(most)], rowHeight: 30, left: 154, groups: [{ rows }],
  });
  legend(byId("limit-legend"), [
    { label: MARKS.seed, colour: "var(--soft)", shape: "circle", dot: true }, { label: MARKS.mean, colour: "var(--soft)", shape: "circle" },
  ]);
  const line = (name, error, share, longwave, above, warming) => [name, error.toFixed(2), fixed(share, 0), longwave === null ? "–" : longwave.toFixed(0),
    above === null ? "–" : String(Math.round(above)), warming === null ? "not known" : warming.toFixed(2)];
  const told = (key) => line(label(key), known[key].error, 100 * known[key].share, known[key].longwave, known[key].above, known[key].warming);
  byId("limit-table").append(makeTable(
    ["", "error (K)", "way by the return (%)", "longwave error (W m⁻²)", "columns above a black body", "warming for 2 × CO₂ (K)"],
    [told("static"), ...data.best.map(({ name, longwave, above }) => {
      const cell = cellNamed(name);
      return line(name, cell.globe, cell.share, longwave, above, null);
    }), told("proportional"), ...(limit ? [line(label("limit"), limit.globe, 100, null, null, null)] : [])],
  ));
}

/* Every mean against the published one. */
function showReproduced() {
  const points = reproductions.filter((c) => c.published).flatMap((c) => data.bands.map((band, i) => ({
    cell: c, band, ours: c.mean[i], published: c.published.mean[i], differ: c.published.differ[i],
    halves: [c.published.half[i], c.half[i]],
  })));
  if (!points.length) return;
  const values = points.flatMap((p) => [p.ours, p.published]);
  const range = [Math.min(...values) / 1.25, Math.max(...values) * 1.25];
  const title = "Our means against the published ones: areaWRMSE of a band (K)";
  const chart = element("div", { class: "square", role: "img", tabindex: "0" });
  byId("reproduced-figure").append(element("figure", {}, element("figcaption", {}, title, " ", offerDrawing(chart, "reproduced", title)), chart));
  const differ = points.filter((p) => p.differ).length;
  chart.setAttribute("aria-label", `${title}. ${points.length} means near the line of equal ones; ${differ} of them differ by Welch’s test. Arrow keys go through these.`);
  let spots = [], cursor, at = -1;
  const point = (i, event) => {
    const p = points[i];
    at = i;
    cursor.setAttribute("transform", `translate(${spots[i]})`);
    cursor.setAttribute("visibility", "visible");
    tooltip(event, `${p.cell.name}, ${p.band}`, [["ours", `${p.ours.toFixed(2)} K`], ["published", `${p.published.toFixed(2)} K`],
      ["Welch’s test, 5 %", p.differ ? "differ" : "no difference"]]);
  };
  const leave = () => cursor?.setAttribute("visibility", "hidden");
  const nearest = (event) => {
    const { left, top } = chart.getBoundingClientRect(), [x, y] = [event.clientX - left, event.clientY - top];
    return spots.reduce((best, [a, b], i) => (Math.hypot(a - x, b - y) < Math.hypot(spots[best][0] - x, spots[best][1] - y) ? i : best), 0);
  };
  const draw = () => {
    const { width, height } = chart.getBoundingClientRect();
    if (!width) return;
    const box = { left: 44, right: width - 10, top: 8, bottom: height - 40 };
    const [low, high] = range.map(Math.log);
    const toX = (v) => box.left + ((Math.log(v) - low) / (high - low)) * (box.right - box.left);
    const toY = (v) => box.bottom - ((Math.log(v) - low) / (high - low)) * (box.bottom - box.top);
    const root = svg("svg", { viewBox: `0 0 ${width} ${height}` });
    for (const tick of ticksOfDecades(...range)) {
      root.append(svg("line", { class: "axis", x1: toX(tick), x2: toX(tick), y1: box.top, y2: box.bottom }));
      root.append(svg("line", { class: "axis", x1: box.left, x2: box.right, y1: toY(tick), y2: toY(tick) }));
      root.append(svg("text", { x: toX(tick), y: box.bottom + 16, "text-anchor": "middle" }, String(tick)));
      root.append(svg("text", { x: box.left - 5, y: toY(tick) + 4, "text-anchor": "end" }, String(tick)));
    }
    root.append(svg("text", { x: (box.left + box.right) / 2, y: height - 6, "text-anchor": "middle" }, "published (K)"));
    root.append(svg("text", { transform: `translate(11,${(box.top + box.bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, "ours (K)"));
    root.append(svg("line", { x1: toX(range[0]), y1: toY(range[0]), x2: toX(range[1]), y2: toY(range[1]), stroke: "var(--ink)" }));
    spots = points.map((p) => [toX(p.published), toY(p.ours)]);
    points.forEach((p, i) => {
      const { colour } = data.styles[p.cell.algo], [x, y] = spots[i];
      root.append(mark(SHAPES[p.cell.algo], x, y, p.differ ? 4.6 : 3, { fill: colour, "fill-opacity": p.differ ? 1 : 0.55, stroke: p.differ ? "var(--ink)" : "none", "stroke-width": 1.4 }));
    });
    cursor = svg("circle", { r: 8, fill: "none", stroke: "var(--ink)", "stroke-width": 1.5, visibility: "hidden" });
    root.append(cursor);
    chart.replaceChildren(root);
  };
  onPointer(chart, (event) => point(nearest(event), event), leave);
  chart.addEventListener("blur", () => { if (pointed?.place === chart) leavePointed(); });
  chart.addEventListener("keydown", (event) => {
    if (event.key === "Escape") leavePointed();
    if (event.key === "Enter" && at >= 0) openCell(points[at].cell.name);
    const by = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const order = points.map((p, i) => i).filter((i) => points[i].differ || !differ);
    const next = order[(order.indexOf(at) + by + order.length) % order.length];
    const { left, top } = chart.getBoundingClientRect();
    tell(chart, () => point(next, { clientX: left + spots[next][0], clientY: top + spots[next][1] }), leave);
  });
  chart.addEventListener("click", (event) => { if (event.detail) openCell(points[nearest(event)].cell.name); });
  new ResizeObserver(draw).observe(chart);
  legend(byId("reproduced-legend"), [
    ...ALGORITHMS.map((algo) => ({ ...data.styles[algo], shape: SHAPES[algo] })),
    { label: "large, with an edge: differs (Welch’s test, 5 %)", colour: "var(--soft)", shape: "circle" },
    { label: "equal", colour: "var(--ink)", width: 1 },
  ]);
}
