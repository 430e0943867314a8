import { describe, expect, it } from '@jest/globals';

import { parseCompletionsBody } from '../../../../api/chat/completions-body.ts';

const MESSAGE = { role: 'user', content: 'Hello' };
const text = (words: string | null) => ({ type: 'text', text: words });
const file = (data: string) => ({ type: 'file', file: { file_data: data, filename: 'a.pdf' } });
const user = (...content: unknown[]) => ({ role: 'user', content });

describe('a body of completions', () => {
  const parse = (fields: object) => parseCompletionsBody({ messages: [MESSAGE], ...fields });

  it.each([
    ['an empty text', ''],
    ['an empty list', []],
    ['a list of empty texts', ['', null, '']],
    ['null', null],
  ])('stops at nothing where `stop` is %s', (_what, stop) => {
    expect(parse({ stop }).request.passed).toEqual({});
  });

  it('stops at the texts of a list that are some', () => {
    expect(parse({ stop: ['', 'END', null] }).request.passed).toEqual({ stop: ['END'] });
  });

  it.each([
    [{ stream_options: { include_usage: null } }],
    [{ response_format: { type: null } }],
    [{ messages: [{ role: 'user', name: null, content: [{ type: 'text', text: 'Hello', annotations: null }] }] }],
    [{ messages: [user(text('Hello'), text(null))] }],
  ])('counts null as left out, also within %j', (fields) => {
    expect(parse(fields)).toMatchObject({
      request: { messages: [MESSAGE], jsonMode: false },
      form: { usage: 'last chunk' },
    });
  });

  it('keeps null in metadata, which is the caller’s own', () => {
    expect(parse({ metadata: { a: null } }).request.metadataJson).toBe('{"a":null}');
  });

  it.each([
    [undefined, 'last chunk'],
    [{}, 'last chunk'],
    [{ include_usage: true }, 'own chunk'],
    [{ include_usage: false }, 'none'],
  ])('has the usage of %j: %s', (options, usage) => {
    expect(parse({ stream: true, ...(options && { stream_options: options }) }).form).toEqual({ usage });
  });

  it('asks for any length, and lets the model and its window say less', () => {
    expect(parse({ max_tokens: 1_000_000 }).request).toMatchObject({ maxTokens: 1_000_000, fitsTokens: true });
    expect(parse({ max_tokens: 5, max_completion_tokens: 20_000 }).request).toMatchObject({ maxTokens: 20_000 });
    expect(parse({}).request).toMatchObject({ isUnbounded: true, fitsTokens: true });
    expect(() => parse({ max_tokens: 0 })).toThrow('`max_tokens` must be');
  });

  it('passes on the settings of OpenAI’s protocol, and none that changes nothing', () => {
    const set = { frequency_penalty: 1, presence_penalty: -1, reasoning_effort: 'low', verbosity: 'low' };
    expect(parse(set).request.passed).toEqual(set);
    expect(parse({ frequency_penalty: 0, presence_penalty: 0 }).request.passed).toEqual({});
    expect(() => parse({ presence_penalty: 3 })).toThrow('`presence_penalty` must be');
  });

  it('takes any 64-bit seed, and an empty user as none', () => {
    expect(parse({ seed: 2 ** 60, user: '' }).request.passed).toEqual({ seed: 2 ** 60 });
  });

  it('takes json_mode, this service’s own word for it', () => {
    expect(parse({ json_mode: true }).request.jsonMode).toBe(true);
  });

  it.each([
    [{ n: 2 }, '`n` must be 1: a request has one answer'],
    [{ functions: [{ name: 'add' }] }, '`functions` is the older form of `tools`'],
    [{ modalities: ['text', 'audio'] }, '`modalities[1]` must be [text]'],
    [{ tools: {} }, '`tools` must be an array'],
    [
      { tools: [{ type: 'function', function: { name: 'add' } }], tool_choice: { type: 'function', name: 'add' } },
      '`tool_choice` must be `none`, `auto`',
    ],
    [{ tools: [{ type: 'function' }] }, '`tools[0].function` is required'],
    [{ tools: [{ type: 'function', function: { name: '' } }] }, '`tools[0].function.name` is not allowed to be empty'],
    [{ tool_choice: 'required' }, '`tool_choice` needs `tools`'],
    [
      {
        tools: [{ type: 'function', function: { name: 'add' } }],
        tool_choice: { type: 'function', function: { name: 'sub' } },
      },
      '`tool_choice` names `sub`, which is not among `tools`',
    ],
    [{ top_logprobs: 2 }, '`top_logprobs` needs `logprobs: true`'],
  ])('is refused with %j', (fields, say) => {
    expect(() => parse(fields)).toThrow(say);
  });

  const TOOL = { type: 'function', function: { name: 'add', parameters: { type: 'object' } } };

  it('passes on what it does not know, as it came, and says what a target must have', () => {
    const fields = { tools: [TOOL], tool_choice: 'auto', parallel_tool_calls: false, top_k: 5, logit_bias: { 7: -1 } };

    expect(parse({ ...fields, seed: null }).request).toMatchObject({
      passed: fields,
      needs: ['tools', 'openai_fields'],
    });
    const custom = { type: 'custom', custom: { name: 'run' }, function: null };
    expect(parse({ tools: [custom] }).request.needs).toContain('custom_tools');
    expect(parse({ logprobs: true, top_logprobs: 3 }).request.needs).toEqual(['logprobs']);
    expect(parse({ tools: [], tool_choice: 'none', logprobs: false, logit_bias: {} }).request).toMatchObject({
      passed: {},
    });
    expect(parse({}).request).not.toHaveProperty('needs');
  });

  it('keeps back what would run a request elsewhere, longer or at another price, and names it', () => {
    const parsed = parse({ service_tier: 'priority', store: true, models: ['dear'], max_new_tokens: 9, user: 'u' });

    expect(parsed.ignoredFields).toEqual(['service_tier', 'store', 'models', 'max_new_tokens']);
    expect(parsed.request.passed).toEqual({ user: 'u' });
    expect(parse({ service_tier: 'auto', store: false }).ignoredFields).toEqual([]);
  });
});

const FUNCTION = { name: 'add', arguments: '{"x":1}' };
const CALL = { id: 'call_1', type: 'function', function: FUNCTION };
const ASKED = { role: 'assistant', content: null, tool_calls: [CALL] };
const RESULT = { role: 'tool', tool_call_id: 'call_1', content: '3' };
const IMAGE = { type: 'image_url', image_url: { url: 'https://example.com/a.png', detail: 'low' } };

describe('the messages of completions', () => {
  const parse = (...messages: unknown[]) => parseCompletionsBody({ messages }).request;

  it('travel with their calls of tools and results as they came', () => {
    const request = parse(MESSAGE, { ...ASKED, refusal: null, annotations: [] }, RESULT);

    expect(request.messages).toEqual([
      MESSAGE,
      { role: 'assistant', content: '', sent: ASKED },
      { role: 'tool', content: '3', sent: RESULT },
    ]);
    expect(request.needs).toEqual(['tools']);
  });

  it.each([
    ['developer', { role: 'developer', content: 'Be brief' }, { role: 'system', content: 'Be brief' }],
    ['name', { ...MESSAGE, name: 'Ann' }, { ...MESSAGE, sent: { ...MESSAGE, name: 'Ann' } }],
    ['a null name', { ...MESSAGE, name: null }, MESSAGE],
    ['a refusal', { role: 'assistant', content: null, refusal: 'No.' }, { role: 'assistant', content: 'No.' }],
    ['text parts', user({ ...text('Hel'), image_url: null }, text('lo')), MESSAGE],
    ['a result in parts', { ...RESULT, content: [text('3')] }, { role: 'tool', content: '3', sent: RESULT }],
  ])('say in short what is long on the wire: %s', (_what, message, expected) => {
    const before = message.role === 'tool' ? [MESSAGE, ASKED] : message.role === 'assistant' ? [MESSAGE] : [];

    expect(parse(...before, message).messages.at(-1)).toEqual(expected);
  });

  it('hold images, sound and files of the user, which a target must take', () => {
    const sound = { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } };
    const message = user(text('See'), IMAGE, sound, file('data:application/pdf;base64,AAAA'));

    expect(parse(message)).toMatchObject({
      messages: [{ role: 'user', content: 'See', sent: message }],
      needs: ['images', 'audio', 'files'],
    });
    expect(parse({ role: 'user', content: [IMAGE] }).messages[0]).toMatchObject({ content: '' });
  });

  it('may be 2,048, and longer than those of the chat routes', () => {
    expect(parse({ role: 'user', content: 'x'.repeat(100_000) }).messages).toHaveLength(1);
    expect(parse(...Array<object>(2_048).fill(MESSAGE)).messages).toHaveLength(2_048);
    expect(() => parse(...Array<object>(2_049).fill(MESSAGE))).toThrow('`messages` must not have more than 2048 items');
  });

  const image = (url: unknown) => user({ type: 'image_url', image_url: { url } });
  const call = (more: object) => ({ ...ASKED, tool_calls: [{ ...CALL, ...more }] });

  it.each<[string, unknown[], string]>([
    ['a message that is no object', ['x'], '`messages[0]` must be of type object'],
    ['no role', [{ content: 'x' }], '`messages[0].role` is required'],
    ['another role', [{ role: 'bot', content: 'x' }], '`messages[0].role` must be one of [user, assistant, system'],
    [
      'the role function',
      [MESSAGE, { role: 'function', name: 'f', content: 'x' }],
      '`messages[1].role` must be `tool`',
    ],
    ['no content', [{ role: 'user' }], '`messages[0].content` is required'],
    ['an empty content', [{ role: 'user', content: '' }], '`messages` must have at least one message with text'],
    ['a number', [{ role: 'user', content: 7 }], '`messages[0].content` must be a string or a list of parts'],
    ['no parts', [{ role: 'user', content: [] }], '`messages` must have at least one message with text'],
    ['a strange part', [user({ type: 'video' })], '`messages[0].content[0].type` must be one of'],
    ['an image in a text', [user({ ...IMAGE, ...text('x') })], '[0].image_url` belongs to a part of'],
    ['a text in an image', [user({ ...text('x'), ...IMAGE })], '[0].text` belongs to a part of'],
    ['a function in a custom call', [call({ type: 'custom', custom: FUNCTION })], '[0].function` belongs to a call of'],
    ['a custom tool in a call', [call({ custom: FUNCTION })], '[0].custom` belongs to a call of another type'],
    ['a file at a URL', [user(file('https://example.com/a.pdf'))], '[0].file.file_data` must be the file as a data'],
    ['an image of the system', [{ role: 'system', content: [IMAGE] }], '`messages[0].content[0].type` must be text'],
    ['no URL', [image('a.png')], '`messages[0].content[0].image_url.url` must be an http or https URL'],
    ['a private host', [image('http://169.254.169.254/x')], '[0].content[0].image_url.url` must be on a public'],
    ['empty data', [image('data:image/png;base64,')], 'url` must be an http or https URL, or `data:image'],
    ['a file of the provider', [user({ type: 'file', file: { file_id: 'f' } })], '.file.file_id` is not supported'],
    ['a result without its call', [MESSAGE, RESULT], '`messages[1].tool_call_id` must be the id of one of the'],
    [
      'a result behind other words',
      [ASKED, RESULT, MESSAGE, RESULT],
      '`messages[3].tool_call_id` must be the id of one of the',
    ],
    ['a result of nothing', [ASKED, { role: 'tool', content: 'x' }], '`messages[1].tool_call_id` is required'],
    ['a call without its result', [MESSAGE, ASKED, MESSAGE], '`messages[1].tool_calls[0]` must be followed by'],
    ['a call at the end', [MESSAGE, ASKED], '`messages[1].tool_calls[0]` must be followed by'],
    ['odd arguments', [call({ function: { name: 'f', arguments: {} } })], '[0].function.arguments` must be a string'],
    ['an older call', [{ ...ASKED, function_call: { name: 'f' } }], '`messages[0].function_call` is the older form of'],
    [
      'nothing but silence',
      [{ role: 'assistant', content: '' }],
      '`messages` must have at least one message with text',
    ],
  ])('are refused with %s', (_what, messages, say) => {
    expect(() => parse(...messages)).toThrow(say);
  });
});
