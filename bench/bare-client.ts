import { send } from './http.ts'

export type BareClient = ReturnType<typeof bareClient>

export function bareClient(url: string) {
  return {
    queue: (body: string) => send(`${url}/queue`, { method: 'POST', body }),
    insert: (body: string) => send(`${url}/d1`, { method: 'POST', body }),
    count: async (scope: string) => Number(await send(`${url}/count/${scope}`)),
    socketUrl: (scope: string) => `${url}/socket/${scope}`.replace('http', 'ws'),
  }
}
