import { Reflex, type Scope } from 'reflex-agents/client'

/**
 * The deployment, the key and the scope from the part of the address behind `#`, which browsers do
 * not send. In your application give the browser tickets only: `{ base_url, ticket: () => … }`.
 */
const given = new URLSearchParams(location.hash.slice(1))

export const reflex = new Reflex({
  base_url: given.get('url') ?? 'http://localhost:8787',
  key: given.get('key') ?? '',
  connection_id: given.get('name') ?? 'me',
})
export const scope: Scope = reflex.scope(given.get('scope') ?? 'chat/demo')
