/** `look` sees each chunk of the body first. An error that it throws fails the body. */
export function watchedBody(response: Response, look: (chunk: Uint8Array) => void): Response {
  if (!response.body) return response
  const looking = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      look(chunk)
      controller.enqueue(chunk)
    },
  })
  const { status, statusText, headers } = response
  return new Response(response.body.pipeThrough(looking), { status, statusText, headers })
}
