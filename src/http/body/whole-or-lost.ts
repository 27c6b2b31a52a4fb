const CHUNK_BYTES = 64 * 1024

/** Sends a text; calls `lost` if the connection breaks first, unless network buffers hide it. */
export function wholeOrLost(text: string, lost: () => void): ReadableStream<Uint8Array> {
  const bytes = new TextEncoder().encode(text)
  let taken = 0
  return new ReadableStream(
    {
      pull(controller) {
        controller.enqueue(bytes.subarray(taken, taken + CHUNK_BYTES))
        taken += CHUNK_BYTES
        if (taken >= bytes.length) controller.close()
      },
      cancel: lost,
    },
    { highWaterMark: 0 },
  )
}
