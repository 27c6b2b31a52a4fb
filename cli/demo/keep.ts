import { approveCommand, type WaitingApproval } from './approvals.ts'
import { FAILING_SCOPE } from './failing-scope.ts'
import { REFLEX } from './set-reflex.ts'

type Kept = { url: string; key: string; scope: string; approvals: readonly WaitingApproval[] }

/** Commands to paste into another terminal, in the project's folder. */
export function howToTalk({ url, key, scope, approvals }: Kept): string[] {
  const path = encodeURIComponent(scope)
  const socket = `${url.replace('http', 'ws')}/v1/scopes/chat%2Fdemo/ws`
  const commands = approvals.slice(0, 3).map(approveCommand)
  return [
    `The server is up until you press Ctrl-C. Its dashboard: ${url}, with this key:`,
    '',
    key,
    '',
    'In another terminal:',
    '',
    `KEY=${key}`,
    `URL=${url}`,
    '',
    '# its settings and counters; what it keeps in mind; the last turn it logged',
    `curl -s -H "Authorization: Bearer $KEY" $URL/v1/scopes/${path}`,
    `curl -s -H "Authorization: Bearer $KEY" "$URL/v1/scopes/${path}/context?limit=3"`,
    `curl -s -H "Authorization: Bearer $KEY" "$URL/v1/scopes/${path}/log?limit=1000" | grep -o '"summary":"[^}]*' | tail -1`,
    '',
    '# what the reflex has done, and why it fired or passed on each event',
    `curl -s -H "Authorization: Bearer $KEY" $URL/v1/reflexes/${REFLEX}/metrics`,
    `curl -s -H "Authorization: Bearer $KEY" "$URL/v1/scopes/${path}/log?limit=1000" | grep -o '"kind":"reflex-fired","action":[^}]*}' | tail -3`,
    '',
    '# what waits for a person; each of these commands approves one, and it runs',
    `curl -s -H "Authorization: Bearer $KEY" "$URL/v1/approvals?status=pending"`,
    ...commands,
    '',
    '# send it a line, and follow its log from the beginning (Ctrl-C ends that)',
    `curl -s -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" $URL/v1/events \\`,
    `  -d '{"type":"log.line","scope":"${scope}","host":"demo","line":"Failed password for root from 203.0.113.9 port 4711 ssh2"}'`,
    `curl -sN -H "Authorization: Bearer $KEY" "$URL/v1/scopes/${path}/stream?after=0"`,
    '',
    '# the dead letter, and its retry (which fails again)',
    `curl -s -H "Authorization: Bearer $KEY" $URL/v1/dlq`,
    `curl -s -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" $URL/v1/dlq/retry -d '{"scope":"${FAILING_SCOPE}"}'`,
    '',
    '# a WebSocket: says hello to the chat agent, and prints all that comes back for 2 s',
    `npx node -e '`,
    `  const socket = new WebSocket("${socket}", { headers: { Authorization: "Bearer ${key}" } })`,
    `  socket.onopen = () => socket.send(JSON.stringify({ content: "hello" }))`,
    `  socket.onmessage = ({ data }) => console.log(data)`,
    `  setTimeout(() => socket.close(), 2000)'`,
    '',
    `Every route: ${url}/v1/docs`,
  ]
}
