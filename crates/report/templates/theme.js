// The theme of every page: that of the system until the reader chooses one, or the address has ?theme=light or ?theme=dark.
// Charts that draw their own colours listen for "themechange".
const hoistwayTheme = (function () {
  "use strict";
  const SYSTEM = "(prefers-color-scheme: dark)";
  const root = document.documentElement;
  const darkness = matchMedia(SYSTEM);
  const name = () => root.dataset.theme || (darkness.matches ? "dark" : "light");

  // Pictures in the page are SVG files with media rules of their own, which follow the choice here.
  const darkRules = new Set();
  function themePictures(theme) {
    for (const sheet of document.styleSheets) {
      for (const rule of sheet.cssRules) {
        if (rule instanceof CSSMediaRule && /prefers-color-scheme:\s*dark/.test(rule.media.mediaText)) darkRules.add(rule);
      }
    }
    for (const rule of darkRules) rule.media.mediaText = theme ? (theme === "dark" ? "all" : "not all") : SYSTEM;
  }

  function announce() {
    themePictures(root.dataset.theme);
    document.dispatchEvent(new Event("themechange"));
  }

  function choose(theme) {
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
    else delete root.dataset.theme;
    const control = document.getElementById("theme");
    if (control) control.value = root.dataset.theme || "system";
    announce();
  }

  darkness.addEventListener("change", announce);
  addEventListener("beforeprint", () => themePictures("light"));
  addEventListener("afterprint", () => themePictures(root.dataset.theme));
  const asked = new URLSearchParams(location.search).get("theme");
  if (asked === "light" || asked === "dark") root.dataset.theme = asked;
  document.addEventListener("DOMContentLoaded", () => {
    const control = document.getElementById("theme");
    if (control) control.addEventListener("change", (event) => choose(event.target.value));
    choose(root.dataset.theme);
  });
  return { name, choose };
})();
