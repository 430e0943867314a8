import { Field, Select, TextArea, textsOf } from '../ui/field.tsx';
import { Button, Card } from '../ui/parts.tsx';
import { SCHEMA_EXAMPLE, TOOLS_EXAMPLE } from './call.ts';
import type { Draft, ToolCall } from './call.ts';

/** The answer may be made of these: a text, JSON by a schema, calls of tools. */
export function AnswerSettings({
  draft,
  faults,
  set,
}: {
  draft: Draft;
  faults: { tools?: string; schema?: string };
  set: (changes: Partial<Draft>) => void;
}) {
  const { format, schema, tools, toolChoice } = draft;
  return (
    <Card title="Format and tools">
      <div class="stack">
        <Select
          label="Format"
          value={format}
          options={[
            ['text', 'Text'],
            ['json_object', 'A JSON object'],
            ['json_schema', 'JSON by a schema'],
          ]}
          onChange={(event) => {
            set({
              format: event.currentTarget.value as Draft['format'],
              schema: schema === '' ? SCHEMA_EXAMPLE : schema,
            });
          }}
        />
        {format === 'json_schema' && (
          <TextArea
            label="Schema"
            fault={faults.schema}
            value={schema}
            rows={8}
            spellcheck={false}
            data-mono
            onInput={(event) => {
              set({ schema: event.currentTarget.value });
            }}
          />
        )}
        <TextArea
          label="Tools"
          hint="A JSON list, as OpenAI's clients send it."
          fault={faults.tools}
          value={tools}
          rows={tools === '' ? 2 : 8}
          spellcheck={false}
          data-mono
          onInput={(event) => {
            set({ tools: event.currentTarget.value });
          }}
        />
        {tools === '' ? (
          <Button
            onClick={() => {
              set({ tools: TOOLS_EXAMPLE, toolChoice: 'required', prompt: 'What is the weather in Oslo?' });
            }}
          >
            Example tool
          </Button>
        ) : (
          <Select
            label="Tools are called"
            value={toolChoice}
            options={[
              ['auto', 'where the model wants to'],
              ['required', 'first of all'],
              ['none', 'never'],
            ]}
            onChange={(event) => {
              set({ toolChoice: event.currentTarget.value as Draft['toolChoice'] });
            }}
          />
        )}
      </div>
    </Card>
  );
}

/** The calls of an answer as they come; once all are there, their results can be sent back. */
export function ToolCalls({
  calls,
  reply,
}: {
  calls: readonly ToolCall[];
  /** Undefined while the answer is not complete. */
  reply: ((results: string[]) => void) | undefined;
}) {
  return (
    <form
      class="body stack"
      onSubmit={(event) => {
        event.preventDefault();
        reply?.(textsOf(new FormData(event.currentTarget), 'result'));
      }}
    >
      {calls.map(({ id, name, arguments: given }) => (
        <div key={id} class="stack">
          <pre class="call" tabIndex={0} aria-label={`The call of ${name}`}>
            <b>{name}</b>({given})
          </pre>
          {reply !== undefined && (
            <Field label={`Result of ${name}`} name="result" placeholder='{"celsius": 4}' required data-mono />
          )}
        </div>
      ))}
      {reply !== undefined && (
        <div class="row">
          <button type="submit" class="button" data-kind="primary">
            {calls.length === 1 ? 'Reply with the result' : 'Reply with the results'}
          </button>
        </div>
      )}
    </form>
  );
}
