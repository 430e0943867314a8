import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { Link } from 'wouter-preact';

import { useParams } from '../shell/router.ts';
import { Field, Select, TextArea } from '../ui/field.tsx';
import { count, duration } from '../ui/format.ts';
import { Badge, Button, Card, Code, ErrorBox, Facts, PageHead } from '../ui/parts.tsx';
import { faultsIn, toCall, withResults } from './call.ts';
import type { Draft } from './call.ts';
import { LANGUAGES, snippet } from './snippets.ts';
import type { Language } from './snippets.ts';
import { createStream, IDLE } from './stream.ts';
import type { StreamState } from './stream.ts';
import { AnswerSettings, ToolCalls } from './tools.tsx';

function Settings({ draft, set }: { draft: Draft; set: (changes: Partial<Draft>) => void }) {
  return (
    <Card title="Parameters">
      <div class="stack">
        <Select
          label="Tier"
          value={draft.model}
          onChange={(event) => {
            set({ model: event.currentTarget.value as Draft['model'] });
          }}
          options={[
            ['mobius', 'mobius'],
            ['oloid', 'oloid'],
          ]}
        />
        <Field
          label="Entity"
          hint="Its conversation is remembered. Empty: stateless."
          value={draft.entity}
          maxLength={256}
          placeholder="visitor-1"
          onInput={(event) => {
            set({ entity: event.currentTarget.value });
          }}
        />
        <TextArea
          label="System prompt"
          value={draft.system}
          rows={3}
          onInput={(event) => {
            set({ system: event.currentTarget.value });
          }}
        />
        <Field
          label="Longest answer, in tokens"
          type="number"
          min={1}
          max={16_384}
          placeholder="4096"
          value={draft.maxTokens}
          onInput={(event) => {
            set({ maxTokens: event.currentTarget.value });
          }}
        />
        <div class="pair">
          <Field
            label="Subject"
            value={draft.subject}
            onInput={(event) => {
              set({ subject: event.currentTarget.value });
            }}
          />
          <Field
            label="Grade"
            value={draft.grade}
            onInput={(event) => {
              set({ grade: event.currentTarget.value });
            }}
          />
        </div>
      </div>
    </Card>
  );
}

const PHASES = {
  idle: 'ready',
  streaming: 'in_progress',
  cut: 'connection_cut',
  done: 'completed',
  failed: 'failed',
} as const;
const TONES = { idle: undefined, streaming: 'waiting', cut: 'failed', done: 'success', failed: 'failed' } as const;

/** In place of a text that has not come. */
function waitsFor({ phase, queue, toolCalls }: StreamState): string {
  if (queue !== undefined) return queue;
  if (toolCalls.length > 0) return 'The model calls tools, and waits for their results.';
  return phase === 'streaming' ? 'Waiting for the first token …' : 'The answer comes here, token by token.';
}

function Answer({
  state,
  stream,
  reply,
}: {
  state: StreamState;
  stream: ReturnType<typeof createStream>;
  reply: (results: string[]) => void;
}) {
  const { phase } = state;
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    box.current?.scrollTo({ top: box.current.scrollHeight });
  }, [state.text]);
  return (
    <Card
      bare
      title={
        <span class="row">
          Answer <Badge tone={TONES[phase]}>{PHASES[phase]}</Badge>
        </span>
      }
      actions={
        <>
          {phase === 'streaming' && (
            <Button onClick={stream.cut} disabled={state.requestId === undefined}>
              Cut the network
            </Button>
          )}
          {phase === 'cut' && (
            <Button kind="primary" onClick={() => void stream.resume()}>
              Resume
            </Button>
          )}
          {(phase === 'streaming' || phase === 'cut') && (
            <Button kind="danger" onClick={() => void stream.cancel()}>
              Cancel
            </Button>
          )}
        </>
      }
    >
      <div class="answer" ref={box} tabIndex={0} role="log" aria-label="Answer" aria-busy={phase === 'streaming'}>
        {state.text === '' ? <span class="muted">{waitsFor(state)}</span> : state.text}
      </div>
      {state.toolCalls.length > 0 && <ToolCalls calls={state.toolCalls} reply={phase === 'done' ? reply : undefined} />}
      {state.error !== undefined && (
        <div class="body">
          <ErrorBox error={state.error} />
        </div>
      )}
      <div class="body">
        <Facts
          across
          rows={[
            ['First token', state.firstTokenMs === undefined ? null : duration(state.firstTokenMs)],
            ['Whole answer', state.durationMs === undefined ? null : duration(state.durationMs)],
            [
              'Tokens',
              state.usage === undefined
                ? null
                : `${count(state.usage.prompt_tokens)} of the prompt, ${count(state.usage.completion_tokens)} of the answer`,
            ],
            ['Finish reason', state.finishReason],
            [
              'Events',
              `${count(state.lines.length)}${state.resumes === 0 ? '' : `, resumed ${state.resumes === 1 ? 'once' : `${state.resumes} times`}`}`,
            ],
            [
              'Request',
              state.requestId === undefined ? null : (
                <Link key="r" href={`/requests/${state.requestId}`} class="mono">
                  {state.requestId}
                </Link>
              ),
            ],
          ]}
        />
      </div>
    </Card>
  );
}

export function Playground() {
  const [params] = useParams();
  const [draft, setDraft] = useState<Draft>({
    model: params['model'] === 'oloid' ? 'oloid' : 'mobius',
    prompt: 'Explain in three sentences why bridges have expansion joints.',
    system: '',
    entity: params['entity'] ?? '',
    subject: '',
    grade: '',
    maxTokens: '',
    format: 'text',
    schema: '',
    tools: '',
    toolChoice: 'auto',
    history: [],
  });
  const [state, setState] = useState(IDLE);
  const [language, setLanguage] = useState<Language>('curl');
  const stream = useMemo(() => createStream(setState), []);
  useEffect(() => stream.leave, [stream]);
  const set = (changes: Partial<Draft>) => {
    setDraft((before) => ({ ...before, ...changes }));
  };
  const faults = faultsIn(draft);
  const begin = (changes: Partial<Draft>) => {
    set(changes);
    void stream.start(toCall({ ...draft, ...changes }));
  };
  return (
    <>
      <PageHead title="Playground" about="Real requests with your key: they count and cost as any other." />
      <div class="split">
        <div class="stack">
          <Card>
            <form
              class="stack"
              onSubmit={(event) => {
                event.preventDefault();
                begin({ history: [] });
              }}
            >
              <TextArea
                label="Message"
                value={draft.prompt}
                rows={4}
                required
                maxLength={16_000}
                onInput={(event) => {
                  set({ prompt: event.currentTarget.value });
                }}
                onKeyDown={(event) => {
                  if (event.key === 'Enter' && (event.metaKey || event.ctrlKey))
                    event.currentTarget.form?.requestSubmit();
                }}
              />
              <div class="row between">
                <span class="muted small">Ctrl and Enter send it, too.</span>
                <button
                  type="submit"
                  class="button"
                  data-kind="primary"
                  disabled={state.phase === 'streaming' || Object.keys(faults).length > 0}
                >
                  Send
                </button>
              </div>
            </form>
          </Card>
          <Answer
            state={state}
            stream={stream}
            reply={(results) => {
              begin({ history: withResults(draft, state.text, state.toolCalls, results) });
            }}
          />
          <Card
            title="The same call"
            actions={
              <div class="tabs" role="group" aria-label="Language">
                {LANGUAGES.map((each) => (
                  <button
                    key={each}
                    type="button"
                    aria-pressed={each === language}
                    onClick={() => {
                      setLanguage(each);
                    }}
                  >
                    {each}
                  </button>
                ))}
              </div>
            }
          >
            <Code text={snippet(language, toCall(draft))} label={`The call in ${language}`} />
          </Card>
        </div>
        <div class="stack">
          <Settings draft={draft} set={set} />
          <AnswerSettings draft={draft} faults={faults} set={set} />
        </div>
      </div>
    </>
  );
}
