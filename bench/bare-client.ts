import { send } from './http.ts'

export type BareClient = ReturnType<typeof bareClient>

export function bareClient(url: string) {
  return {
    each: (body: string) => send(`${url}/each`, { method: 'POST', body }),
    grouped: (body: string) => send(`${url}/grouped`, { method: 'POST', body }),
    insert: (body: string) => send(`${url}/d1`, { method: 'POST', body }),
    count: async (scope: string) => Number(await send(`${url}/count/${scope}`)),
    socketUrl: (scope: string) => `${url}/socket/${scope}`.replace('http', 'ws'),
  }
}
