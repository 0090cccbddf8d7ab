// Light, dark or automatic colours. A classic script in the head, so that the page never appears in the wrong colours.
"use strict";
(() => {
  const KEY = "capr-theme";
  const NAMES = { "": "Auto", light: "Light", dark: "Dark" };
  const storedTheme = () => {
    try {
      return localStorage.getItem(KEY) ?? "";
    } catch {
      return "";
    }
  };
  const apply = (theme) => {
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
  };
  apply(storedTheme());
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const label = (theme) => {
      button.textContent = NAMES[theme];
      button.setAttribute("aria-label", `Colours: ${theme || "automatic"}. Change`);
    };
    let theme = storedTheme();
    label(theme);
    button.addEventListener("click", () => {
      const order = Object.keys(NAMES);
      theme = order[(order.indexOf(theme) + 1) % order.length];
      try {
        localStorage.setItem(KEY, theme);
      } catch {
        /* private window: the choice lasts until the page closes */
      }
      apply(theme);
      label(theme);
    });
  });
})();
