/** An event of the service's streams: `id:` and `data:` lines, ended by an empty one. Comments are no events. */
export interface ParsedEvent {
  seq: number;
  data: string;
}

/** Takes a stream's text as it comes and gives back every event that is complete. */
export function createEventParser(): (text: string) => ParsedEvent[] {
  let rest = '';
  return (text) => {
    const blocks = (rest + text).split('\n\n');
    rest = blocks.pop() ?? '';
    return blocks.flatMap((block) => {
      const match = /^(?::.*\n)*id: (\d+)\ndata: ([^\n]*)$/.exec(block);
      if (match !== null) return [{ seq: Number(match[1]), data: match[2] ?? '' }];
      if (block === '') return [];
      throw new Error(`This is no event of a stream: ${block.slice(0, 100)}`);
    });
  };
}
