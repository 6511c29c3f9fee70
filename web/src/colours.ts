// Okabe and Ito's colours, which people with any colour vision tell apart, and greys; kinds beyond them share colours but
// not names. Bars carry their names as text, so that nothing is said by colour alone.

const palette = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a800", "#7f7f7f"];

export const colour = (index: number): string => palette[index % palette.length]!;

// Black or white, whichever is readable on it.
export function ink(background: string): string {
  const channel = (at: number): number => {
    const value = parseInt(background.slice(at, at + 2), 16) / 255;
    return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5) > 0.18 ? "#000000" : "#ffffff";
}

// A colour of the page's theme.
export const theme = (name: string): string =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// Calls `draw` when the theme changes, or when the page is printed.
export function on_theme_change(draw: () => void): void {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  matchMedia("print").addEventListener("change", draw);
}
