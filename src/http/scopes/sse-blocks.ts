/** The blocks of a stream of server-sent events, until it ends or `signal` aborts. */
export async function* blocksOf({ body }: Response, signal: AbortSignal): AsyncGenerator<string> {
  let rest = ''
  for await (const text of body?.pipeThrough(new TextDecoderStream(), { signal }) ?? []) {
    const blocks = `${rest}${text}`.split('\n\n')
    rest = blocks.pop() ?? ''
    yield* blocks
  }
}
