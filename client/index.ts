export { Reflex, type ListedReflex } from './reflex.ts'
export {
  Scope,
  type Approval,
  type EventEnd,
  type Listener,
  type LoggedEvent,
  type Page,
  type ScopeOptions,
  type ScopeStatus,
} from './scope.ts'
export { ReflexError, type ApiCall as Api, type ProblemBody as Problem, type ReflexOptions } from './api.ts'
export { connectScope, type Ack, type Connection, type ConnectOptions, type Credential, type Delta } from './socket.ts'
export { TicketRefused } from './ticket.ts'
export { inPath } from './address.ts'
export type { EventInput, EventRecord } from '../src/contract/event-record.ts'
export type { LogEntry } from '../src/contract/log-entry.ts'
export type { ScopeState } from '../src/contract/scope.ts'
