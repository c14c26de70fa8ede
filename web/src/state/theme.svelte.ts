// Light or dark: as the machine says, until somebody says otherwise.

type Name = "light" | "dark";
const KEY = "fairway.theme";

class Theme {
  name = $state<Name>("light");

  constructor() {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const chosen = localStorage.getItem(KEY);
    this.use(chosen === "dark" || chosen === "light" ? chosen : dark.matches ? "dark" : "light");
    dark.addEventListener("change", () => {
      if (!localStorage.getItem(KEY)) this.use(dark.matches ? "dark" : "light");
    });
  }

  get other(): Name {
    return this.name === "dark" ? "light" : "dark";
  }

  turn(): void {
    this.use(this.other);
    localStorage.setItem(KEY, this.name);
  }

  private use(name: Name): void {
    this.name = name;
    document.documentElement.dataset.theme = name;
  }
}

export const theme = new Theme();
