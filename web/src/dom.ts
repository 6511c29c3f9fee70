// Elements from data. Text goes in as text nodes only, so that no name in a file can become markup.

type Child = Node | string;
type Attributes = Record<string, string | number | boolean | undefined>;

function fill<E extends Element>(element: E, attributes: Attributes, children: Child[]): E {
  for (const [name, value] of Object.entries(attributes))
    if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : String(value));
  element.append(...children);
  return element;
}

export const html = <K extends keyof HTMLElementTagNameMap>(
  name: K, attributes: Attributes = {}, ...children: Child[]
): HTMLElementTagNameMap[K] => fill(document.createElement(name), attributes, children);

export const svg = (name: string, attributes: Attributes = {}, ...children: Child[]): SVGElement =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", name) as SVGElement, attributes, children);

export function button(text: string, label: string, act: () => void): HTMLButtonElement {
  const result = html("button", { type: "button", title: label, "aria-label": label }, text);
  result.addEventListener("click", act);
  return result;
}

let ids = 0;
export const unique = (prefix: string): string => `${prefix}-${++ids}`;

// Hands a file to whoever looks at the page.
export function save_as(name: string, content: Blob): void {
  const link = html("a", { href: URL.createObjectURL(content), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
