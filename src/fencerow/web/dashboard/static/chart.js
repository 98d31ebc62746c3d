// Pictures of the tables beside them, drawn with uPlot. The numbers are in the table, so nothing is lost without this.
//
// <figure class="chart" id="…" data-table="ID" data-columns="succeeded failed" data-unit="s">…<div class="canvas"></div></figure>
// The columns are `th` with data-name, data-shape (bar, line, dash) and data-colour (a property of style.css). A row
// begins with a `time`, or with a number in data-value; a cell has its number in data-value, or has none.
"use strict";
(() => {
  const HEIGHT = 150;
  const WHOLE = [1, 2, 5].flatMap((each) => Array.from({ length: 10 }, (_, zeros) => each * 10 ** zeros)).sort((a, b) => a - b);
  const SECONDS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 3600, 7200, 18000, 36000, 86400, 864000];
  const DAY = { month: "short", day: "numeric", timeZone: "UTC" };
  const kept = new Map(); // by the id of the figure: its plot outlives the swap of a live page
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const sizes = new ResizeObserver((changes) => {
    for (const { target } of changes) {
      const each = kept.get(target.closest("figure").id);
      if (each && target.clientWidth) each.plot.setSize({ width: target.clientWidth, height: HEIGHT });
    }
  });

  function span(seconds) {
    if (seconds >= 5400) return `${+(seconds / 3600).toFixed(1)} h`;
    if (seconds >= 120) return `${+(seconds / 60).toFixed(1)} min`;
    return seconds === 0 || seconds >= 10 ? `${Math.round(seconds)} s` : `${+seconds.toFixed(2)} s`;
  }

  function told(value, unit) {
    if (value === null) return "–";
    return unit === "s" ? span(value) : value.toLocaleString("en");
  }

  // --- what a table holds ------------------------------------------------------------------------

  function read(figure) {
    const table = document.getElementById(figure.dataset.table);
    const heads = [...table.tHead.rows[0].cells];
    const columns = figure.dataset.columns.split(" ").map((name) => {
      const place = heads.findIndex((each) => each.dataset.name === name);
      return { name, place, shape: heads[place].dataset.shape, colour: heads[place].dataset.colour };
    });
    const rows = [...table.tBodies[0].rows];
    const x = rows.map((row) => {
      const time = row.cells[0].querySelector("time");
      return time ? Date.parse(time.dateTime) / 1000 : Number(row.cells[0].dataset.value);
    });
    const isTime = rows.length > 0 && rows[0].cells[0].querySelector("time") !== null;
    for (const each of columns) {
      each.values = rows.map((row) => {
        const { value } = row.cells[each.place].dataset;
        return value === undefined ? null : Number(value);
      });
    }
    return { x, columns, isTime };
  }

  // Bars stand on each other in the order of the columns: so the sum of all is drawn first, and those below over it.
  function drawn({ x, columns }) {
    const bars = columns.filter((each) => each.shape === "bar");
    let below = x.map(() => 0);
    const stacked = bars.map((each) => {
      below = below.map((sum, at) => sum + (each.values[at] || 0));
      return { ...each, heights: below };
    });
    const lines = columns.filter((each) => each.shape !== "bar").map((each) => ({ ...each, heights: each.values }));
    return [...stacked.reverse(), ...lines];
  }

  // --- how it looks ------------------------------------------------------------------------------

  function colour(figure, property) {
    const probe = figure.querySelector(".probe"); // `light-dark(…)` becomes a colour only where it is used
    probe.style.color = `var(${property})`;
    return getComputedStyle(probe).color;
  }

  // Bars are lighter than words of the same colour; opaque, because they stand one over the other.
  function lighter(figure, property) {
    const [over, under] = [property, "--panel"].map((each) => colour(figure, each).match(/[\d.]+/g).map(Number));
    return `rgb(${[0, 1, 2].map((at) => Math.round(0.65 * over[at] + 0.35 * under[at])).join(", ")})`;
  }

  function series(figure, each) {
    const stroke = colour(figure, each.colour);
    if (each.shape === "bar") {
      return {
        fill: each.colour === "--failed" ? stroke : lighter(figure, each.colour),
        width: 0, points: { show: false }, paths: uPlot.paths.bars({ size: [0.8, 24], align: 1 }),
      };
    }
    return { stroke, width: 1.5, dash: each.shape === "dash" ? [4, 3] : undefined, points: { size: 4, width: 1.5 } };
  }

  function axes(figure, isTime) {
    const { unit } = figure.dataset;
    const look = {
      stroke: colour(figure, "--ink-3"),
      font: `12px ${getComputedStyle(figure).fontFamily}`,
      ticks: { show: false },
    };
    const days = (splits) => splits.length > 1 && splits[splits.length - 1] - splits[0] > 172800;
    const clock = (splits) => splits.map((each) => {
      const at = new Date(each * 1000);
      return days(splits) ? at.toLocaleDateString("en", DAY) : at.toISOString().slice(11, 16);
    });
    return [
      { ...look, grid: { show: false }, space: 70, size: 24, gap: 4, ...(isTime ? { values: (_, splits) => clock(splits) } : {}) },
      {
        ...look, grid: { stroke: colour(figure, "--line"), width: 1 }, space: 28, size: 52, gap: 4,
        values: (_, splits) => splits.map((each) => told(each, unit)),
        incrs: unit === "s" ? SECONDS : WHOLE,
      },
    ];
  }

  function made(figure, canvas, found, parts) {
    const step = found.x.length > 1 ? found.x[1] - found.x[0] : 1;
    return new uPlot({
      width: canvas.clientWidth || 300,
      height: HEIGHT,
      padding: [8, 18, 0, 0], // half of the last label stands beyond the plot
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false, setScale: false } },
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
      scales: {
        x: { time: found.isTime, range: (_, least, most) => [least, most + (parts.some((each) => each.shape === "bar") ? step : 0)] },
        y: { range: (_, least, most) => [0, most > 0 ? most * 1.08 : 1] },
      },
      axes: axes(figure, found.isTime),
      series: [{}, ...parts.map((each) => series(figure, each))],
      hooks: { setCursor: [(plot) => point(figure.id, plot.cursor.idx)] },
    }, [found.x, ...parts.map((each) => each.heights)], canvas);
  }

  // --- exact values where somebody points; else those of the last stretch that is over ------------

  function point(id, at) {
    const each = kept.get(id);
    const figure = document.getElementById(id);
    if (!each || !figure) return;
    const place = figure.closest("section");
    const said = place.querySelector(".at");
    const isAt = typeof at === "number" && each.plot.cursor.left >= 0;
    if (said) said.textContent = isAt ? clockOf(each.found, at) : said.dataset.idle;
    for (const column of each.found.columns) {
      const shown = place.querySelector(`[data-of="${column.name}"]`);
      if (shown) shown.textContent = isAt ? told(column.values[at], figure.dataset.unit) : shown.dataset.idle;
    }
  }

  function clockOf({ x, isTime }, at) {
    return isTime ? `${new Date(x[at] * 1000).toISOString().slice(0, 16).replace("T", " ")} UTC` : x[at].toLocaleString("en");
  }

  function step(event) {
    const each = kept.get(event.currentTarget.closest("figure").id);
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!each || !by) return;
    const last = each.found.x.length - 1;
    const from = typeof each.plot.cursor.idx === "number" ? each.plot.cursor.idx : last + 1;
    const at = Math.min(Math.max(from + by, 0), last);
    each.plot.setCursor({ left: each.plot.valToPos(each.found.x[at], "x") + 1, top: 10 });
    event.preventDefault();
  }

  // --- drawn when the page is there, after each live swap, and when the colours change -------------

  function draw(figure, anew) {
    const canvas = figure.querySelector(".canvas");
    const found = read(figure);
    const parts = drawn(found);
    const named = JSON.stringify(parts.map((each) => [each.name, each.shape]));
    const old = kept.get(figure.id);
    if (old && !anew && old.named === named) {
      old.found = found;
      if (old.plot.root.parentNode !== canvas) canvas.append(old.plot.root);
      old.plot.setData([found.x, ...parts.map((each) => each.heights)]);
      point(figure.id, old.plot.cursor.idx);
    } else {
      if (old) old.plot.destroy();
      kept.set(figure.id, { found, named, plot: made(figure, canvas, found, parts) });
    }
    canvas.onkeydown = step;
    canvas.onblur = () => kept.get(figure.id).plot.setCursor({ left: -10, top: -10 });
    sizes.observe(canvas);
  }

  function paint(anew = false) {
    sizes.disconnect();
    const figures = [...document.querySelectorAll("figure.chart")];
    for (const each of figures) draw(each, anew);
    for (const [id, each] of kept) {
      if (!figures.some((figure) => figure.id === id)) {
        each.plot.destroy();
        kept.delete(id);
      }
    }
  }

  document.addEventListener("fencerow:shown", () => paint());
  dark.addEventListener("change", () => paint(true));
  paint();
})();
