import type { KeptRun } from '../history.ts';

const BEGIN = '<!-- Written by npm run bench -- charts: change nothing below. -->';
const END = '<!-- Change nothing above. -->';

export interface Filling {
  run: KeptRun;
  /** Files beside the page. */
  charts: readonly string[];
  /** Markdown. */
  tables: string;
}

/** Puts a run between the marks of its page; what stands around them stays. Throws where there are none. */
export function fillPage(page: string, { run, charts, tables }: Filling): string {
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin === -1 || end < begin) throw new Error(`The page needs the lines "${BEGIN}" and "${END}".`);
  const { startedAt, commit, nodeVersion, machine } = run;
  const parts = [
    `Measured on ${startedAt.slice(0, 10)}: commit ${commit}, Node.js ${nodeVersion}, ${machine}.`,
    charts.map((file) => `![${file.replace('.svg', '').replaceAll('-', ' ')}](${file})`).join('\n\n'),
    tables.trim(),
  ];
  return `${page.slice(0, begin)}${BEGIN}\n\n${parts.join('\n\n')}\n\n${page.slice(end)}`;
}
