import { baseUrl } from './api.ts';
import type { Call } from './call.ts';

export const LANGUAGES = ['curl', 'JavaScript', 'Python', 'openai'] as const;
export type Language = (typeof LANGUAGES)[number];

const shellQuote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

/** Fields that OpenAI's client does not know travel as its extra body. */
function toOpenai({ model, messages, ...more }: Call['body']): string {
  const body = JSON.stringify({ model, messages, ...more, stream: true }, undefined, 2);
  const shown =
    'tools' in more
      ? 'console.log(chunk.choices[0]?.delta)'
      : "process.stdout.write(chunk.choices[0]?.delta?.content ?? '')";
  return `import OpenAI from 'openai';

const client = new OpenAI({ baseURL: '${baseUrl}', apiKey: process.env.PARLEY_KEY });
const stream = await client.chat.completions.create(${body});
for await (const chunk of stream) ${shown};`;
}

/** The request of the playground as a program makes it. The key is never part of it. */
export function snippet(language: Language, { path, body }: Call): string {
  const url = `${baseUrl}${path}`;
  const json = JSON.stringify(body, undefined, 2);
  if (language === 'curl')
    return `curl -N ${url} \\\n  -H "Authorization: Bearer $PARLEY_KEY" \\\n  -H "Content-Type: application/json" \\\n  -d ${shellQuote(json)}`;
  if (language === 'JavaScript')
    return `const response = await fetch('${url}', {
  method: 'POST',
  headers: { Authorization: \`Bearer \${process.env.PARLEY_KEY}\`, 'Content-Type': 'application/json' },
  body: JSON.stringify(${json}),
});
for await (const text of response.body.pipeThrough(new TextDecoderStream())) process.stdout.write(text);`;
  if (language === 'Python')
    return `import json, os, urllib.request

body = json.loads(r"""${json}""")
request = urllib.request.Request(
    "${url}",
    json.dumps(body).encode(),
    {"Authorization": f"Bearer {os.environ['PARLEY_KEY']}", "Content-Type": "application/json"},
)
for line in urllib.request.urlopen(request):
    print(line.decode(), end="")`;
  return toOpenai(body);
}
