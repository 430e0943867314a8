/**
 * `npm run config-docs`: writes the service's part of `.env.example` and the guide's list of variables from the settings,
 * and the guide's list of a chat completion's fields from their schemas. With `types` it writes those of both APIs instead.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { fieldUses } from '../api/chat/completions-body.ts';
import { createAdminDocument } from '../api/openapi/admin-api.ts';
import { createDocument } from '../api/openapi/public-api.ts';
import { settings } from '../shared/config/settings.ts';
import type { Setting } from '../shared/config/settings.ts';
import { writeTypes } from './api-types.ts';

const ROOT = join(import.meta.dirname, '..');

const meaning = ({ isSecret, text }: Pick<Setting, 'isSecret' | 'text'>) => (isSecret ? `Secret. ${text}` : text);

/** Processes of both kinds read a setting unless it names one. */
function settingLine({ name, without, readBy, ...setting }: Setting): string {
  const facts = [without, readBy].filter((fact) => fact !== 'none' && fact !== 'both');
  return `- \`${name}\`${facts.length === 0 ? '' : ` (${facts.join('; ')})`}: ${meaning(setting)}\n`;
}

/** Fields by what becomes of them: first those that need no word more, then one line for each other. */
function fieldLines(): string {
  const byUse = Map.groupBy(fieldUses(), ([, openai = '', anthropic = '']) =>
    openai === anthropic ? openai : `${openai}; Anthropic's: ${anthropic}`,
  );
  const parts = Array.from(byUse, ([use, rows]) => {
    const plain = rows.filter(([, , , note]) => note === '').map(([name]) => name);
    const noted = rows.flatMap(([name = '', , , note = '']) =>
      note === '' ? [] : note.startsWith(name) ? note : `${name}: ${note}`,
    );
    const lines = [...(plain.length === 0 ? [] : [plain.join(', ')]), ...noted];
    return `**${use.charAt(0).toUpperCase()}${use.slice(1)}**\n\n${lines.map((line) => `- ${line}\n`).join('')}`;
  });
  return parts.join('\n');
}

function example({ name, without, text }: Setting): string {
  const absent = without.startsWith('required') ? without.replace('r', 'R') : `Default: ${without}`;
  const plain = `${text}. ${absent}`.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1');
  return `${plain.replaceAll(/(.{1,116})(?: |$)/g, '# $1\n')}${name}=\n`;
}

const byGroup = (heading: (group: string) => string, write: (setting: Setting) => string) =>
  Object.entries<Record<string, Setting>>(settings)
    .map(([group, rows]) => `${heading(group)}\n\n${Object.values(rows).map(write).join('')}\n`)
    .join('');

/** The files as their sources have them. What tools read of the settings stays as it is: it has no row. */
export function configDocs(): Record<string, string> {
  const write = (file: string, part: RegExp, text: string) =>
    [file, readFileSync(join(ROOT, file), 'utf8').replace(part, () => text)] as const;
  return Object.fromEntries([
    write(
      'docs/guide/configuration.md',
      /^\*\*redis\*\*\n[^]*?(?=^\*\*tools)/m,
      byGroup((group) => `**${group}**`, settingLine),
    ),
    write('docs/guide/compatibility.md', /(?<=^## Fields\n\n)[^]*?(?=^## )/m, `${fieldLines()}\n`),
    write(
      '.env.example',
      /^# --- redis[^]*?(?=^# --- of tools)/m,
      byGroup((group) => `# --- ${group} ---`, example),
    ),
  ]);
}

const apiTypes = () => ({
  'scripts/admin-api.d.ts': writeTypes(JSON.stringify(createAdminDocument())),
  'console/public-api.d.ts': writeTypes(JSON.stringify(createDocument())),
});

if (import.meta.main)
  for (const [file, text] of Object.entries(process.argv[2] === 'types' ? apiTypes() : configDocs()))
    writeFileSync(join(ROOT, file), text);
