export { ReflexChatTransport, type ReflexChatOptions } from './transport.ts'
