/**
 * The methods of the market's artifacts: tools by name, with their arguments in order. An action
 * `invoke_artifact {artifact_id, method, args}` calls the tool `ARTIFACT_ID.METHOD`.
 */
const methods = {
  'genesis_ledger.balance': [],
  'genesis_ledger.transfer': ['to', 'amount', 'memo'],
  'genesis_store.search': ['q', 'kind', 'type', 'max_price', 'sort'],
  'genesis_store.read': ['id', 'version'],
  'genesis_escrow.list': ['artifact', 'kind', 'price', 'terms'],
  'genesis_escrow.unlist': ['listing_id'],
  'genesis_escrow.offer': ['listing_id', 'price'],
  'genesis_escrow.accept': ['deal_id'],
  'genesis_escrow.reject': ['deal_id', 'reason'],
  'genesis_escrow.cancel': ['deal_id', 'reason'],
  'genesis_contracts.propose': ['counterparty', 'service', 'price_per_invocation', 'limit'],
  'genesis_contracts.accept': ['contract_id'],
  'genesis_contracts.reject': ['contract_id', 'reason'],
  'genesis_contracts.end': ['contract_id', 'reason'],
  'genesis_contracts.dispute': ['contract_id', 'reason', 'traces'],
  'genesis_contracts.invoke': ['service', 'input'],
} as const

type MarketToolName = keyof typeof methods
export const marketToolNames = Object.keys(methods) as MarketToolName[]

/** The method that calls the service of a contract in force. */
const SERVICE_METHOD = 'run'

const named = (name: string): readonly string[] | undefined => (Object.hasOwn(methods, name) ? methods[name as MarketToolName] : undefined)

type Invocation = { artifact_id: string; method: string; args: readonly unknown[] }

/** The tool call that an invocation is, or null. Arguments come in order, or as one object. */
export function marketCall({ artifact_id, method, args }: Invocation): { tool: MarketToolName; input: Record<string, unknown> } | null {
  const names = named(`${artifact_id}.${method}`)
  if (names) return { tool: `${artifact_id}.${method}` as MarketToolName, input: fieldsOf(names, args) }
  if (method !== SERVICE_METHOD || artifact_id.startsWith('genesis_')) return null
  return { tool: 'genesis_contracts.invoke', input: { service: artifact_id, input: args[0] ?? {} } }
}

function fieldsOf(names: readonly string[], args: readonly unknown[]): Record<string, unknown> {
  const [only] = args
  if (args.length === 1 && typeof only === 'object' && only !== null && !Array.isArray(only)) return { ...only }
  // An argument too many gets a name that no tool takes.
  return Object.fromEntries(args.map((value, index) => [names[index] ?? `argument_${index + 1}`, value]))
}
