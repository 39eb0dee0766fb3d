// Opens a page in frames of two widths and two themes, and checks what must hold on every page: no script errors, no sideways
// scrolling, targets of at least 24 px, titles on both axes of charts, pictures that are whole and whose labels do not overlap,
// text of at least 11 px with a contrast of at least 4.5:1, the answer before the facts.
(async function () {
  const failures = [];
  let checks = 0;
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

  const channels = (colour) => {
    const numbers = (colour.match(/[\d.]+/g) || []).map(Number);
    return /^color\(/.test(colour) ? numbers.slice(0, 3).map((c) => c * 255).concat(numbers[3] ?? 1) : numbers.slice(0, 3).concat(numbers[3] ?? 1);
  };
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3]));

  function background(view, node) {
    const layers = [];
    for (let at = node; at; at = at.parentElement) {
      const style = view.getComputedStyle(at);
      const picture = at.localName === "svg" && (at.querySelector("rect.page"));
      const colour = channels(picture ? view.getComputedStyle(picture).fill : style.backgroundColor);
      if (colour.length === 4 && colour[3] > 0) layers.push(colour);
      if (colour[3] === 1) break;
    }
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255]);
  }

  function contrast(view, node, says) {
    const style = view.getComputedStyle(node);
    const ink = channels(node.namespaceURI.endsWith("svg") ? style.fill : style.color);
    const paper = background(view, node);
    const [a, b] = [luminance(over(ink, paper)), luminance(paper)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    checks += 1;
    if (ratio < 4.5) says(`the text "${node.textContent.trim().slice(0, 30)}" has a contrast of ${ratio.toFixed(2)}`);
  }

  const isShown = (node) => node.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true }) && node.getClientRects().length > 0;

  function inspect(frame, says) {
    const { contentDocument: page, contentWindow: view } = frame;
    const wide = page.documentElement.scrollWidth;
    checks += 1;
    if (wide > view.innerWidth) says(`the page is ${wide} px wide`);
    for (const node of page.querySelectorAll("a[href], button, select, input, summary")) {
      if (!isShown(node) || node.matches(".skip, p a, li li a")) continue;
      const { width, height } = node.getBoundingClientRect();
      checks += 1;
      if (width < 23.9 || height < 23.9) says(`the target "${node.getAttribute("aria-label") || node.textContent}" has ${width.toFixed(1)} x ${height.toFixed(1)} px`);
      if (!node.labels?.length && !(node.getAttribute("aria-label") || node.textContent.trim())) says("a control without a name");
    }
    const control = page.getElementById("theme");
    checks += 1;
    if (!control || control.options?.length !== 3) says("no choice of system, light and dark theme");
    for (const chart of page.querySelectorAll(".plot")) if (isShown(chart) && chart.chart) inspectChart(chart, says);
    for (const canvas of page.querySelectorAll("canvas[data-chart]")) if (isShown(canvas)) inspectCanvas(canvas, says);
    for (const picture of page.querySelectorAll("main figure svg:not(.plot svg)")) if (isShown(picture)) inspectPicture(view, picture, says);
    const [answer, facts] = [page.querySelector(".answer, .verdict"), page.querySelector(".facts")];
    checks += 1;
    if (answer && facts && answer.compareDocumentPosition(facts) & Node.DOCUMENT_POSITION_PRECEDING) says("the facts stand before the answer");
    const texts = Array.from(page.querySelectorAll("body *")).filter((n) => Array.from(n.childNodes).some((c) => c.nodeType === 3 && c.data.trim()));
    // Texts within bars are on the colour of the bar, which the script of the page chooses.
    const plain = texts.filter((n) => !n.matches("script, style, option, .inside, .unseen, .skip, title, :disabled") && !n.closest("noscript, .unseen") && isShown(n));
    plain.forEach((node) => contrast(view, node, says));
    for (const node of plain.filter((n) => !n.closest("svg") && n.getAttribute("aria-hidden") !== "true")) {
      checks += 1;
      const size = parseFloat(view.getComputedStyle(node).fontSize);
      if (size < 11) says(`the text "${node.textContent.trim().slice(0, 30)}" has ${size} px`);
    }
  }

  // A chart: both axes of its content have labels, which are drawn, and no labels overlap.
  function inspectChart(chart, says) {
    const { x, y } = chart.chart.spec();
    checks += 2;
    if (!x.label || !y.label) says(`${chart.id} has an axis without a label`);
    for (const title of [".title.x", ".title.y"]) {
      checks += 1;
      if (!chart.querySelector(title)?.textContent) says(`${chart.id} shows no ${title}`);
    }
    const overlap = overlapping(Array.from(chart.querySelectorAll("svg text:not(.inside)")));
    if (overlap) says(`${chart.id}: ${overlap}`);
    if (/^bandwidth/.test(chart.id)) {
      const rates = (c) => c.chart.spec().series.filter((of) => !c.chart.hidden().has(of.key)).flatMap((of) => Array.from(of.points).filter((_, i) => i % 2));
      const charts = Array.from(chart.ownerDocument.querySelectorAll("[id^=bandwidth-].plot")).filter((c) => c.chart && isShown(c));
      const most = Math.max(...charts.flatMap(rates));
      const top = y.range[1];
      checks += 1;
      if (!(top > most && top < 1.2 * most)) says(`${chart.id} ends at ${top} MB/s, the highest point shown is ${most}`);
    }
  }

  // The charts that a script draws on a canvas state the titles that they have drawn. Lanes have the names of their rows instead.
  function inspectCanvas(canvas, says) {
    const wanted = { film: [], lanes: ["xTitle"], scheduler: ["xTitle"] }[canvas.dataset.chart] || ["xTitle", "yTitle"];
    for (const title of wanted) {
      checks += 1;
      if (!canvas.dataset[title]) says(`the chart ${canvas.dataset.chart} has no ${title}`);
    }
  }

  // A picture is within its box, both axes have titles or its rows have names, and its labels are readable and apart.
  function inspectPicture(view, picture, says) {
    const name = picture.querySelector("title").textContent;
    const box = picture.getBoundingClientRect();
    const room = picture.closest("figure").getBoundingClientRect();
    checks += 3;
    if (box.left < room.left - 0.5 || box.right > room.right + 0.5) says(`the picture "${name}" is ${box.width} px wide in ${room.width} px`);
    const isTitled = (axis) => Boolean(picture.querySelector(axis)?.textContent);
    if (!isTitled(".x-title")) says(`the picture "${name}" has no title on its x axis`);
    if (!isTitled(".y-title") && !picture.querySelector(".name, .row")) says(`the picture "${name}" has no title on its y axis`);
    const scale = box.width / picture.viewBox.baseVal.width;
    const texts = Array.from(picture.querySelectorAll("text")).filter((t) => t.textContent.trim());
    for (const text of texts) {
      const [size, at] = [parseFloat(view.getComputedStyle(text).fontSize) * scale, text.getBoundingClientRect()];
      checks += 2;
      if (size < 11) says(`the picture "${name}" has text of ${size.toFixed(1)} px`);
      if (at.left < box.left - 0.5 || at.right > box.right + 0.5 || at.bottom > box.bottom + 0.5) says(`"${text.textContent}" is cut off in the picture "${name}"`);
    }
    const overlap = overlapping(texts);
    if (overlap) says(`in the picture "${name}" ${overlap}`);
  }

  // The first two texts that overlap by more than a px, in words.
  function overlapping(texts) {
    const boxes = texts.filter(isShown).map((text) => [text.textContent, text.getBoundingClientRect()]);
    checks += 1;
    for (let i = 0; i < boxes.length; i += 1) {
      for (let k = 0; k < i; k += 1) {
        const [[a, p], [b, q]] = [boxes[i], boxes[k]];
        // The box of a text is higher than its letters.
        const [wide, high] = [Math.min(p.right, q.right) - Math.max(p.left, q.left), Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top)];
        if (wide > 1 && high > 4) return `"${a}" and "${b}" overlap`;
      }
    }
    return "";
  }

  async function open(html, width, theme) {
    const frame = document.createElement("iframe");
    frame.style.cssText = `width:${width}px;height:1400px;border:0`;
    const says = (what) => failures.push(`${width} px, ${theme}: ${what}`);
    document.body.append(frame);
    frame.srcdoc = html.replace("<head>", `<head><script>onerror = (m) => { (window.errors = window.errors || []).push(m); };</` + "script>").replace('<html lang="en">', `<html lang="en" data-theme="${theme}">`);
    await new Promise((resolve) => frame.addEventListener("load", resolve));
    const root = frame.contentDocument.documentElement;
    const draws = frame.contentDocument.querySelector(".plot, canvas");
    for (let i = 0; draws && i < 300 && root.dataset.ready !== "true"; i += 1) await pause(50);
    await pause(300);
    (frame.contentWindow.errors || []).forEach((error) => says(`script error: ${error}`));
    inspect(frame, says);
    frame.remove();
  }

  try {
    const html = new TextDecoder().decode(Uint8Array.from(atob(document.getElementById("page").textContent), (c) => c.charCodeAt(0)));
    for (const width of [390, 1280]) for (const theme of ["light", "dark"]) await open(html, width, theme);
  } catch (error) {
    failures.push(String(error && error.stack));
  }
  const result = document.createElement("pre");
  result.id = "browser-check";
  result.textContent = failures.length ? `FAILED ${failures.length}: ${failures.slice(0, 25).join(" | ")}` : `PASSED ${checks} checks`;
  document.body.append(result);
})();
