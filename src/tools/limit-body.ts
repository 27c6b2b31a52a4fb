/** The same response, whose body breaks off with an error where it is longer than allowed: nothing larger is ever in memory. */
export function limitBody(response: Response, max_bytes: number): Response {
  if (!response.body) return response
  let bytes = 0
  const counting = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      bytes += chunk.length
      if (bytes > max_bytes) controller.error(new Error(`the response is larger than ${max_bytes} bytes`))
      else controller.enqueue(chunk)
    },
  })
  const { status, statusText, headers } = response
  return new Response(response.body.pipeThrough(counting), { status, statusText, headers })
}
