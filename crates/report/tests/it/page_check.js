// Opens a page in frames of two widths and two themes, and checks what must hold on every page: no script errors, no sideways
// scrolling, targets of at least 24 px, titles on the axes of charts, text with a contrast of at least 4.5:1.
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
      const picture = at.localName === "svg" && (at.querySelector("rect.page") || at.querySelector(".bglayer rect.bg"));
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
    for (const chart of page.querySelectorAll(".plot")) {
      if (!isShown(chart) || !chart.data) continue;
      checks += 1;
      for (const axis of [".xtitle", ".ytitle"]) if (!chart.querySelector(axis)?.textContent) says(`${chart.id} has no ${axis}`);
    }
    for (const picture of page.querySelectorAll("main figure > svg")) {
      checks += 1;
      const titles = Array.from(picture.querySelectorAll(".note, .below, .axis"), (t) => t.textContent).filter((t) => /[a-z]/i.test(t));
      if (titles.length === 0) says(`the picture "${picture.querySelector("title").textContent}" has no axis title`);
      const size = Math.min(...Array.from(picture.querySelectorAll("text"), (t) => t).filter((t) => t.textContent.trim()).map((t) => t.getBoundingClientRect().height));
      if (size < 9) says(`the picture "${picture.querySelector("title").textContent}" has text of ${size.toFixed(1)} px`);
    }
    const texts = Array.from(page.querySelectorAll("body *")).filter((n) => Array.from(n.childNodes).some((c) => c.nodeType === 3 && c.data.trim()));
    // Texts within bars are on the colour of the bar, which the script of the page chooses.
    const plain = texts.filter((n) => !n.matches("script, style, option, .bartext, .unseen, .skip, title, :disabled") && !n.closest("noscript, .unseen, .hoverlayer") && isShown(n));
    plain.forEach((node) => contrast(view, node, says));
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
