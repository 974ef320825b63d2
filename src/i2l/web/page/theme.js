// Sets the theme before anything is drawn: as chosen, or else as the system has it. A plain script, since modules come too late.
{
  const KEY = "i2l-theme";
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const stored = () => { try { return localStorage.getItem(KEY); } catch { return null; } };
  const apply = () => { document.documentElement.dataset.theme = stored() ?? (dark.matches ? "dark" : "light"); };
  dark.addEventListener("change", apply);
  addEventListener("DOMContentLoaded", () => document.getElementById("theme")?.addEventListener("click", () => {
    const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem(KEY, next); } catch { /* it lasts as long as this page */ }
    document.documentElement.dataset.theme = next;
  }));
  apply();
}
