export interface Badge {
  name: string;
  label: string;
  value: string;
  color: string;
}

/** The README's badges. `npm start` runs on older versions of Node.js than the service (scripts/launch.mjs). */
export function badges(manifest: { license: string; version: string }): Badge[] {
  return [
    { name: 'node', label: 'node', value: '20 or newer', color: '#3c873a' },
    { name: 'licence', label: 'licence', value: manifest.license, color: '#0969da' },
    { name: 'version', label: 'version', value: manifest.version, color: '#57606a' },
    { name: 'tests', label: 'tests', value: 'no mocked stores', color: '#1f883d' },
  ];
}

/** Close enough to a character's width: readers have different fonts. */
const CHARACTER_PX = 6.6;
const PADDING_PX = 8;

export function renderBadge({ label, value, color }: Badge): string {
  const [left, right] = [label, value].map((text) => Math.round(text.length * CHARACTER_PX) + 2 * PADDING_PX) as [
    number,
    number,
  ];
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${left + right}" height="20" role="img" aria-label="${label}: ${value}">
  <title>${label}: ${value}</title>
  <clipPath id="r"><rect width="${left + right}" height="20" rx="3"/></clipPath>
  <g clip-path="url(#r)">
    <rect width="${left}" height="20" fill="#424a53"/>
    <rect x="${left}" width="${right}" height="20" fill="${color}"/>
  </g>
  <g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
    <text x="${left / 2}" y="14">${label}</text>
    <text x="${left + right / 2}" y="14">${value}</text>
  </g>
</svg>
`;
}
