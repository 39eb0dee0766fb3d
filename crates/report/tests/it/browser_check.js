// Appended to a page by the browser test: waits until all charts are drawn, compares them with the page's data, works its
// controls, and writes what it finds into the document, where --dump-dom shows it.
(async function () {
  const failures = [];
  let checks = 0;
  const check = (holds, says) => {
    checks += 1;
    if (!holds) failures.push(says);
  };
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const same = (a, b) => a.length === b.length && a.every((v, i) => {
    const w = b[i];
    return v === w || (v == null && w == null) || Math.abs(v - w) <= 1e-9 * Math.max(1, Math.abs(v), Math.abs(w));
  });
  const byId = (id) => document.getElementById(id);
  // The series of a chart with columns of x and y.
  const traces = (id) => {
    const handle = byId(id) && byId(id).chart;
    if (!handle) return [];
    const column = (points, which) => Array.from(points || []).filter((_, i) => i % 2 === which);
    return handle.spec().series.map((of) => ({ ...of, x: column(of.points, 0), y: column(of.points, 1), isShown: !handle.hidden().has(of.key) }));
  };
  const list = (series) => Array.from(series);
  // A page shows line separators and changes of direction as escapes; its data have them.
  const shown = (name) => name.replace(/[\u2028-\u202e]/g, (letter) => `\\u{${letter.codePointAt(0).toString(16)}}`);

  function bandwidth(page) {
    page.elevators.forEach((elevator, n) => {
      const drawn = traces(`bandwidth-${n}`);
      const given = elevator.bandwidth.some((b) => b.bytes_per_s.length) ? elevator.bandwidth : [];
      check(drawn.length === given.length, `bandwidth-${n}: ${drawn.length} lines for ${given.length} processes`);
      given.forEach((b, i) => {
        check(drawn[i].name === shown(page.processes[b.process]), `bandwidth-${n}: name of line ${i}`);
        check(same(list(drawn[i].y), b.bytes_per_s.map((v) => v / 1e6)), `bandwidth-${n}: rates of line ${i}`);
        check(same(list(drawn[i].x), b.bytes_per_s.map((_, w) => ((w + 0.5) * page.window_ns) / 1e9)), `bandwidth-${n}: times of ${i}`);
      });
    });
  }

  function latency(page) {
    const microseconds = page.elevators.every((e) => e.latency.max_ns < 1e7);
    const given = page.elevators.filter((e) => e.percentiles.length);
    const drawn = traces("latency-all");
    check(drawn.length === given.length, `latency: ${drawn.length} lines for ${given.length} elevators`);
    given.forEach((e, i) => {
      const y = e.percentiles.map((p) => p.latency_ns / (microseconds ? 1e3 : 1e6));
      check(drawn[i].name === shown(e.name) && same(list(drawn[i].y), y), `latency of ${e.name}`);
      e.percentiles.forEach((p, k) => {
        check(drawn[i].x[k] === p.percentile, `place of p${p.percentile}`);
      });
    });
  }

  function drive(page) {
    const parts = ["seek_ns", "rotation_ns", "transfer_ns", "overhead_ns", "idle_ns"];
    const any = page.elevators.some((e) => parts.some((p) => e.drive[p] > 0));
    const drawn = traces("drive-all");
    check(drawn.length === (any ? parts.length : 0), `drive: ${drawn.length} parts`);
    drawn.forEach((trace, i) => {
      check(same(list(trace.x), page.elevators.map((e) => e.drive[parts[i]] / 1e9)), `drive: ${parts[i]}`);
    });
  }

  function head(page) {
    page.elevators.forEach((elevator, n) => {
      const drawn = traces(`head-${n}`);
      check(drawn.length === elevator.head.length, `head-${n}: ${drawn.length} traces for ${elevator.head.length} tracks`);
      elevator.head.forEach((track, i) => {
        check(same(list(drawn[i].x), track.time_ns.map((t) => t / 1e9)), `head-${n}: times of track ${i}`);
        check(same(list(drawn[i].y), track.sector), `head-${n}: sectors of track ${i}`);
      });
    });
  }

  function slices(page) {
    page.elevators.forEach((elevator, n) => {
      const found = [];
      for (const trace of traces(`slices-${n}`)) {
for (const [from, to, lane] of trace.spans) found.push([lane, from, to]);
      }
      const given = (elevator.slices || []).map((s) => [s.process, s.start_ns / 1e9, s.end_ns / 1e9]);
      const order = (a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
      check(same(found.sort(order).flat(), given.sort(order).flat()), `slices of ${elevator.name}`);
    });
  }

  // The colour of each series in each chart: that of its legend everywhere.
  function colours() {
    const seen = {};
    for (const node of document.querySelectorAll(".plot")) {
      const shared = node.closest("section").querySelector("[data-legend]");
      const legend = shared ? shared.dataset.legend : "elevator";
      for (const { key, colour } of traces(node.id)) {
        const pair = JSON.stringify(colour);
        check(!seen[`${legend}: ${key}`] || seen[`${legend}: ${key}`] === pair, `${key} is ${pair} in ${node.id}`);
        seen[`${legend}: ${key}`] = pair;
      }
    }
  }

  // What the theme gives the marks and texts of each chart.
  function painted() {
    return Array.from(document.querySelectorAll(".plot"), (node) => {
      const text = getComputedStyle(node.querySelector(".ticks text")).fill;
      const canvas = node.querySelector("canvas");
      const mark = node.querySelector(".marks > [data-key]");
      const style = mark && getComputedStyle(mark);
      return [text, style ? `${style.fill} ${style.stroke}` : canvas.toDataURL()];
    });
  }

  async function theme() {
    colours();
    const before = painted();
    const choose = (name) => {
      byId("theme").value = name;
      byId("theme").dispatchEvent(new Event("change"));
    };
    choose(hoistwayTheme.name() === "dark" ? "light" : "dark");
    await pause(1000);
    const after = painted();
    check(after.every(([text, mark], i) => text !== before[i][0] && mark !== before[i][1]), "the theme changes no colour in some chart");
    choose("system");
    await pause(1000);
    check(JSON.stringify(painted()) === JSON.stringify(before), "the theme does not come back");
  }

  async function legend() {
    const button = document.querySelector('[data-legend="process"] button[data-key]');
    if (!button) return;
    const ids = ["bandwidth-0", "head-0", "slices-0"].filter(byId);
    const shown = () => ids.map((id) => traces(id).filter((t) => t.isShown).length);
    const before = shown();
    button.click();
    await pause(1500);
    const hidden = shown();
    check(ids.every((_, i) => hidden[i] < before[i]), `hiding a process leaves ${hidden} of ${before}`);
    const pressed = Array.from(document.querySelectorAll(`[data-legend="process"] [data-key="${button.dataset.key}"]`));
    check(pressed.every((b) => b.getAttribute("aria-pressed") === "false"), "a legend does not follow the others");
    document.querySelector('[data-legend="process"] [data-all]').click();
    await pause(1500);
    check(String(shown()) === String(before), "'all' does not bring processes back");
  }

  function groups(page) {
    const given = page.groups || [];
    check(Boolean(byId("groups")) === given.length > 0, "the section of groups");
    const rows = Array.from(document.querySelectorAll("#groups tbody tr"));
    check(rows.length === given.length, `${rows.length} rows for ${given.length} groups`);
    rows.forEach((row, i) => {
      check(row.cells[0].textContent === given[i].name.split("/").pop(), `name of group ${i}`);
      check(Number(row.cells[1].textContent) === given[i].weight, `weight of group ${i}`);
      const shares = Array.from(row.cells).slice(2).map((cell) => Number(cell.textContent));
      check(shares.every((share, e) => Math.abs(share - 100 * given[i].shares[e]) <= 0.005 * Math.max(1, share)), `shares of group ${i}: ${shares}`);
    });
    if (!given.length) return;
    const without = Array.from(document.querySelectorAll("#groups thead th")).slice(2).map((th) => th.textContent.includes("no groups"));
    check(without.every((no, e) => no === !page.elevators[e].divides_by_groups), "who has no groups");
  }

  const shownFigures = () => Array.from(document.querySelectorAll("figure[data-elevator]")).filter((f) => !f.hidden);
  const shownElevators = () => Array.from(new Set(shownFigures().map((f) => f.dataset.elevator)));

  async function picker(page) {
    const chips = Array.from(document.querySelectorAll("#picker .chip"));
    if (page.elevators.length < 2) return check(!byId("picker"), "one elevator needs no picker");
    check(chips.length === page.elevators.length, `${chips.length} chips`);
    const last = String(chips.length - 1);
    chips[0].querySelector(".show").click();
    await pause(2000);
    check(!shownElevators().includes("0"), "a hidden elevator's charts are there");
    check(document.querySelector('#table tr[data-elevator="0"]').className === "unpicked", "a hidden elevator's row is not grey");
    const rows = traces("drive-all");
    check(!rows.length || rows[0].y.length === page.elevators.length - 1, "the chart of drive time has a hidden elevator's row");
    const lines = traces("latency-all");
    check(!lines.length || lines.length === page.elevators.length - 1, "the percentiles have a hidden elevator's line");
    chips[chips.length - 1].querySelector(".pin").click();
    await pause(2000);
    check(document.querySelector("#table tbody tr").dataset.elevator === last, "a pinned elevator's row is not the first");
    for (const charts of document.querySelectorAll(".charts")) {
      const first = charts.querySelector("figure[data-elevator]");
      check(!first || first.dataset.elevator === last, `${first && first.dataset.elevator} stands before the pinned elevator`);
    }
    check(!rows.length || traces("drive-all")[0].x[0] === page.elevators[last].drive.seek_ns / 1e9, "the pinned elevator's bar is not the first");
    document.querySelector('#picker [data-set="pinned"]').click();
    await pause(2000);
    check(shownElevators().every((e) => e === last), `of the pinned ones alone ${shownElevators()} are shown`);
    chips[chips.length - 1].querySelector(".pin").click();
    document.querySelector('#picker [data-set="all"]').click();
    await pause(4000);
    check(!rows.length || same(list(traces("drive-all")[0].x), page.elevators.map((e) => e.drive.seek_ns / 1e9)), "'all' does not bring all bars back");
    const sorted = Array.from(document.querySelectorAll("#table tbody tr"), (row) => Number(row.cells[1].dataset.value));
    check(sorted.every((v, i) => i === 0 || sorted[i - 1] <= v), `unpinning does not bring the order back: ${sorted}`);
  }

  function table(page) {
    const rows = () => Array.from(document.querySelectorAll("#table tbody tr"));
    check(rows().length === page.elevators.length, "rows of the table");
    rows().forEach((row, i) => {
      const name = shown(page.elevators[i].name) + (page.elevators[i].starves ? " a job starves" : "");
      check(row.cells[0].textContent === name, `name of row ${i}`);
      check(Number(row.cells[1].dataset.value) === page.elevators[i].bytes_per_s, `bandwidth of row ${i}`);
    });
    const button = document.querySelector('thead button[data-column="1"]');
    const values = () => rows().map((row) => Number(row.cells[1].dataset.value));
    button.click();
    check(values().every((v, i, a) => i === 0 || a[i - 1] >= v), "sorting does not begin with the greatest");
    check(button.closest("th").getAttribute("aria-sort") === "descending", "aria-sort, descending");
    button.click();
    check(values().every((v, i, a) => i === 0 || a[i - 1] <= v), "sorting again does not turn around");
    check(button.closest("th").getAttribute("aria-sort") === "ascending", "aria-sort, ascending");
  }

  async function keys() {
    const nodes = Array.from(document.querySelectorAll(".plot")).filter((n) => /^(bandwidth|head|slices)-/.test(n.id));
    if (!nodes.length) return;
    const width = (n) => n.chart.range()[1] - n.chart.range()[0];
    const before = nodes.map(width);
    nodes[0].querySelector(".plot-area").dispatchEvent(new KeyboardEvent("keydown", { key: "+", bubbles: true }));
    await pause(4000);
    const zoomed = nodes.map(width);
    check(zoomed.every((w, i) => Math.abs(w / before[i] - 0.6) < 1e-6), `zooming one chart of time: ${before} became ${zoomed}`);
    nodes[0].querySelector(".plot-area").dispatchEvent(new KeyboardEvent("keydown", { key: "0", bubbles: true }));
    await pause(4000);
    check(same(nodes.map(width), before), "0 does not show everything again");
  }

  // Drag, crosshair, table and picture of one chart.
  async function hand() {
    const node = document.querySelector(".plot[id^=bandwidth]") || document.querySelector(".plot");
    if (!node) return;
    const area = node.querySelector(".plot-area");
    const box = area.getBoundingClientRect();
    const fire = (type, x, y) => area.dispatchEvent(new PointerEvent(type, { pointerId: 1, pointerType: "mouse", button: 0, clientX: box.left + x, clientY: box.top + y, bubbles: true }));
    area.setPointerCapture = () => {};
    const whole = node.chart.range();
    fire("pointermove", box.width / 2, box.height / 2);
    check(!node.querySelector(".box").hidden && node.querySelector(".box").textContent.length > 4, "the crosshair shows no values");
    fire("pointerdown", box.width * 0.4, box.height / 2);
    fire("pointermove", box.width * 0.6, box.height / 2);
    fire("pointerup", box.width * 0.6, box.height / 2);
    const [from, to] = node.chart.range();
    check(from > whole[0] && to < whole[1] && to - from < 0.4 * (whole[1] - whole[0]), `a drag shows ${from} to ${to}`);
    area.dispatchEvent(new MouseEvent("dblclick", { bubbles: true }));
    check(same(node.chart.range(), whole), "a double click does not show everything");
    area.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
    check(node.querySelector("[role=status]").textContent.length > 4, "an arrow key says no values");
    const button = Array.from(node.querySelectorAll(".tools button")).find((b) => b.textContent === "table");
    button.click();
    const first = node.chart.spec().series.find((of) => of.points && of.points.length);
    check(!first || node.querySelector(".data tbody").rows.length > 0, "the table of a chart is empty");
    button.click();
    const picture = new DOMParser().parseFromString(node.chart.svg(), "image/svg+xml");
    check(!picture.querySelector("parsererror") && picture.querySelectorAll("text").length > 3, "the picture of a chart is no SVG");
    check(!/var\(|light-dark/.test(node.chart.svg()), "the picture of a chart depends on the style sheet");
  }

  async function paper() {
    const nodes = Array.from(document.querySelectorAll(".plot"));
    const width = (n) => Number(n.querySelector("svg").getAttribute("width"));
    const sizes = () => nodes.map(width);
    const before = sizes();
    dispatchEvent(new Event("beforeprint"));
    await pause(2000);
    check(document.documentElement.dataset.theme === "light", "paper is not light");
    check(nodes.every((n) => width(n) <= 680), `on paper charts are ${sizes()} wide`);
    check(nodes.every((n) => width(n) > 200), `on paper charts are ${sizes()} wide`);
    dispatchEvent(new Event("afterprint"));
    await pause(3000);
    check(same(sizes(), before), `after printing charts are ${sizes()} wide, not ${before}`);
  }

  function names() {
    for (const node of document.querySelectorAll(".plot")) {
      const area = node.querySelector(".plot-area");
      check(area.getAttribute("aria-label").length > 10, `${node.id} has no label`);
      check(area.tabIndex === 0, `${node.id} cannot be reached by keyboard`);
      const marks = node.querySelectorAll(".marks > [data-key]").length;
      const isOnCanvas = !node.querySelector("canvas").hidden;
      const wanted = traces(node.id).filter((t) => t.x.length || (t.spans && t.spans.length)).length;
      check(isOnCanvas || marks >= wanted, `${node.id} has ${marks} marks for ${wanted} series`);
      check(!/NaN|Infinity|undefined/.test(node.querySelector("svg").innerHTML), `${node.id} has a mark without a place`);
    }
    for (const button of document.querySelectorAll("main button")) {
      check((button.getAttribute("aria-label") || button.textContent).trim().length > 0, "a button without a name");
    }
    check(new Set(Array.from(document.querySelectorAll("[id]"), (n) => n.id)).size > 10, "ids");
    check(performance.getEntriesByType("resource").every((r) => /^(data|blob):/.test(r.name)), "the page asked for something outside of it");
    check(document.documentElement.scrollWidth <= innerWidth, `the page is wider than the window: ${document.documentElement.scrollWidth}`);
  }

  let done = 0;
  try {
    for (; document.documentElement.dataset.ready !== "true" && done < 600; done += 1) await pause(100);
    check(document.documentElement.dataset.ready === "true", "the charts were not ready after 60 s");
    const page = JSON.parse(byId("hoistway-data").textContent);
    const first = shownElevators().length;
    check(first === 0 || first === Math.min(page.elevators.length, 6), `${first} elevators are shown at first`);
    if (byId("picker")) document.querySelector('#picker [data-set="all"]').click();
    await pause(8000);
    [bandwidth, latency, drive, head, slices, table, groups].forEach((compare) => compare(page));
    names();
    await theme();
    await legend();
    await keys();
    await hand();
    await paper();
    await picker(page);
  } catch (error) {
    failures.push(String(error && error.stack));
  }
  const result = document.createElement("pre");
  result.id = "browser-check";
  result.textContent = failures.length ? `FAILED ${failures.slice(0, 20).join(" | ")}` : `PASSED ${checks} checks`;
  document.body.append(result);
})();
