/** A socket, and one message after the other: the next is sent when the one before is answered. */
export async function connect(url: string): Promise<WebSocket> {
  const connection = new WebSocket(url)
  await new Promise((resolve, reject) => {
    connection.addEventListener('open', resolve)
    connection.addEventListener('error', () => reject(new Error(`no WebSocket at ${url.replace(/\?.*/, '')}`)))
  })
  // It says how far it has read, as every client does.
  connection.addEventListener('message', ({ data }) => {
    const text = String(data)
    if (text.startsWith('{"type":"mark"')) connection.send(text)
  })
  return connection
}

export type Message = { id?: string; type?: string; event_id?: string }
type Exchange = { id: string; content?: string; answers: (message: Message) => boolean }

/** Milliseconds from sending a message until what answers it is heard. */
export function exchange(connection: WebSocket, { id, content = 'hello', answers }: Exchange): Promise<number> {
  const text = JSON.stringify({ id, type: 'ws.message', connection_id: 'bench', content })
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const start = performance.now()
  const late = setTimeout(() => reject(new Error(`no answer to event ${id} on the WebSocket within 10 s`)), 10_000)
  const heard = ({ data }: MessageEvent) => {
    const ms = performance.now() - start
    if (answers(JSON.parse(String(data)) as Message)) resolve(ms)
  }
  const closed = ({ code, reason }: CloseEvent) => reject(new Error(`the WebSocket was closed: ${code} ${reason}`))
  connection.addEventListener('message', heard)
  connection.addEventListener('close', closed)
  connection.send(text)
  return promise.finally(() => {
    clearTimeout(late)
    connection.removeEventListener('message', heard)
    connection.removeEventListener('close', closed)
  })
}
