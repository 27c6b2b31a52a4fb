/**
 * The blocks of a stream of server-sent events, until it ends or `signal` aborts. The stream itself
 * is cancelled: a pipe heeds a signal only once its read has ended, and in a quiet log that is when
 * the next comment comes.
 */
export async function* blocksOf({ body }: Response, signal: AbortSignal): AsyncGenerator<string> {
  if (!body) return
  const reader = body.getReader()
  const decoder = new TextDecoder()
  const stop = () => void reader.cancel(signal.reason).catch(() => {})
  signal.addEventListener('abort', stop)
  try {
    let rest = ''
    while (!signal.aborted) {
      const { done, value } = await reader.read()
      if (done) return
      const blocks = `${rest}${decoder.decode(value, { stream: true })}`.split('\n\n')
      rest = blocks.pop() ?? ''
      yield* blocks
    }
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    signal.removeEventListener('abort', stop)
    stop()
  }
}
