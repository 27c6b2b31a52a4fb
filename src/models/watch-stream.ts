type StreamWatcher<Part> = {
  /** May return another part in its place. */
  onPart: (part: Part) => Part | void
  /**
   * Called once, however the stream ends: `error` is undefined when it was read to its end.
   * `cancelled`: the reader did not want the rest.
   */
  onEnd?: (error: unknown, cancelled: boolean) => void
  /** Maps the error with which the source fails. */
  failure?: (error: unknown) => unknown
  signal?: AbortSignal | undefined
}

/**
 * Reports each part and the one end of a stream. A TransformStream does not see the source's
 * failure or, on every runtime, a cancel. Readers that abort may just stop reading.
 */
export function watchStream<Part>(
  source: ReadableStream<Part>,
  { onPart, onEnd, failure = (error) => error, signal }: StreamWatcher<Part>,
): ReadableStream<Part> {
  const reader = source.getReader()
  let ended = false
  const end = (error: unknown, cancelled = false) => {
    if (ended) return
    ended = true
    signal?.removeEventListener('abort', abort)
    onEnd?.(error, cancelled)
  }
  const abort = () => end(signal?.reason ?? new Error('aborted'))

  if (signal?.aborted) abort()
  else signal?.addEventListener('abort', abort)

  return new ReadableStream<Part>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (done) {
            end(undefined)
            controller.close()
          } else {
            controller.enqueue((ended ? undefined : onPart(value)) ?? value)
          }
        } catch (error) {
          end(error)
          controller.error(failure(error))
          // The rest after a part that `onPart` refused would still be sent.
          void reader.cancel(error).catch(() => undefined)
        }
      },
      async cancel(reason) {
        end(reason ?? signal?.reason ?? new Error('the reader cancelled the stream'), true)
        await reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}
