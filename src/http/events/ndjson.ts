/** Enough for a reader, little enough to hold. */
const CHUNK_CHARACTERS = 64_000

/** Streams values as lines of JSON, at the reader's pace. */
export function ndjson(values: AsyncGenerator): Response {
  const encoder = new TextEncoder()
  const stream = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { text, done } = await nextLines(values)
      if (text !== '') controller.enqueue(encoder.encode(text))
      if (done) controller.close()
    },
    async cancel() {
      await values.return(undefined)
    },
  })
  return new Response(stream, { headers: { 'Content-Type': 'application/x-ndjson' } })
}

async function nextLines(values: AsyncGenerator): Promise<{ text: string; done: boolean }> {
  let text = ''
  while (text.length < CHUNK_CHARACTERS) {
    const next = await values.next()
    if (next.done) return { text, done: true }
    text += `${JSON.stringify(next.value)}\n`
  }
  return { text, done: false }
}
