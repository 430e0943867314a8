/**
 * `npm run config-docs`: writes the service's part of `.env.example` and of the guide's table from the list of settings,
 * the guide's table of a chat completion's fields from their schemas, and the types of both APIs, for `parley` and the
 * console, from their documents.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import openapiTS, { astToString } from 'openapi-typescript';

import { fieldUses } from '../api/chat/completions-body.ts';
import { createAdminDocument } from '../api/openapi/admin-api.ts';
import { createDocument } from '../api/openapi/public-api.ts';
import { settings, settingsList } from '../shared/config/settings.ts';
import type { Setting } from '../shared/config/settings.ts';

const ROOT = join(import.meta.dirname, '..');

const meaning = ({ isSecret, text }: Setting) => (isSecret ? `Secret. ${text}` : text);

/** Padded as prettier has it. */
function table(head: string[], rows: string[][]): string {
  const widths = head.map((title, at) => Math.max(title.length, ...rows.map((row) => row[at]?.length ?? 0)));
  const rule = widths.map((width) => '-'.repeat(width));
  const line = (row: string[]) => `| ${row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(' | ')} |\n`;
  return [head, rule, ...rows].map(line).join('');
}

const settingsTable = () =>
  table(
    ['Variable', 'Default', 'Read by', 'Meaning'],
    settingsList.map((setting) => [`\`${setting.name}\``, setting.without, setting.readBy, meaning(setting)]),
  );

function example({ name, without, text }: Setting): string {
  const absent = without.startsWith('required') ? without.replace('r', 'R') : `Default: ${without}`;
  const plain = `${text}. ${absent}`.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1');
  return `${plain.replaceAll(/(.{1,116})(?: |$)/g, '# $1\n')}${name}=\n`;
}

const examples = () =>
  Object.entries<Record<string, Setting>>(settings)
    .map(([group, rows]) => `# --- ${group} ---\n\n${Object.values(rows).map(example).join('')}\n`)
    .join('');

/** The served document has passed through JSON. Whoever sends a request may leave out what has a default. */
const typesOf = async (document: object, options = {}) =>
  astToString(await openapiTS(JSON.stringify(document), options));

/** The files as their sources have them. What tools read of the settings stays as it is: it has no row. */
export async function configDocs(): Promise<Record<string, string>> {
  const write = (file: string, part: RegExp, text: string) =>
    [file, readFileSync(join(ROOT, file), 'utf8').replace(part, () => text)] as const;
  return Object.fromEntries([
    write('docs/guide/configuration.md', /^\| Variable .*\n(?:\|.*\n)+/m, settingsTable()),
    write(
      'docs/guide/compatibility.md',
      /^\| Field .*\n(?:\|.*\n)+/m,
      table(['Field', 'OpenAI’s protocol', 'Anthropic’s', 'Notes'], fieldUses()),
    ),
    write('.env.example', /^# --- redis[^]*?(?=^# --- of tools)/m, examples()),
    ['scripts/admin-api.d.ts', await typesOf(createAdminDocument())],
    ['console/public-api.d.ts', await typesOf(createDocument(), { defaultNonNullable: false })],
  ]);
}

if (import.meta.main)
  for (const [file, text] of Object.entries(await configDocs())) writeFileSync(join(ROOT, file), text);
