import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isJsonFields, type Json, type JsonFields } from '../../src/base/json.ts'
import { factsOf, type Tools } from '../../src/tools/tool-facts.ts'

/** A task of the retail benchmark: what the user wants, and the right calls in their order. */
export type Task = { id: string; text: string; calls: { tool: string; input: JsonFields }[] }

type Payment = { transaction_type: string; amount: number; payment_method_id: string }
type Item = { item_id: string; product_id: string; price: number; options: JsonFields }
type Order = JsonFields & { order_id: string; user_id: string; status: string; items: Item[]; payment_history: Payment[] }
type Method = JsonFields & { source: string; balance?: number }
type User = JsonFields & {
  user_id: string
  name: { first_name: string; last_name: string }
  email: string
  address: JsonFields
  payment_methods: Record<string, Method>
}
type Variant = { item_id: string; available: boolean; price: number; options: JsonFields }
type Product = JsonFields & { product_id: string; name: string; variants: Record<string, Variant> }
export type Store = { users: Record<string, User>; orders: Record<string, Order>; products: Record<string, Product> }

/** The files are in `data/tau2/domains/retail` of github.com/sierra-research/tau2-bench. */
export function loadRetail(directory: string): { tasks: Task[]; store: Store } {
  const read = (name: string): unknown => JSON.parse(readFileSync(join(directory, name), 'utf8'))
  const tasks = (read('tasks.json') as RawTask[]).map(({ id, user_scenario, evaluation_criteria }): Task => ({
    id,
    text: Object.values(user_scenario.instructions)
      .filter((part) => typeof part === 'string')
      .join('\n'),
    calls: (evaluation_criteria.actions ?? []).map(({ name, arguments: input }) => ({ tool: name, input })),
  }))
  return { tasks, store: read('db.json') as Store }
}
type RawTask = {
  id: string
  user_scenario: { instructions: Record<string, unknown> }
  evaluation_criteria: { actions: { name: string; arguments: JsonFields }[] | null }
}

const READING = [
  'find_user_id_by_email',
  'find_user_id_by_name_zip',
  'get_user_details',
  'get_order_details',
  'get_product_details',
  'get_item_details',
  'list_all_product_types',
  'calculate',
]
/** None of the tools that change the store has one that undoes it. */
const CHANGING = [
  'cancel_pending_order',
  'modify_pending_order_address',
  'modify_pending_order_items',
  'modify_pending_order_payment',
  'modify_user_address',
  'return_delivered_order_items',
  'exchange_delivered_order_items',
  'transfer_to_human_agents',
]
export const retailTools: Tools = factsOf({
  ...Object.fromEntries(READING.map((name) => [name, { repeatable: true }])),
  ...Object.fromEntries(CHANGING.map((name) => [name, {}])),
})
export const changes = (tool: string): boolean => CHANGING.includes(tool)

/** A call on the store, which it may change. Throws where the shop refuses it. */
export function callRetail(store: Store, tool: string, input: JsonFields): Json {
  const text = textIn(input)
  switch (tool) {
    case 'find_user_id_by_email':
      return found(
        Object.values(store.users).find(({ email }) => email.toLowerCase() === text('email').toLowerCase()),
        'User',
      ).user_id
    case 'find_user_id_by_name_zip':
      return userByName(store, text)
    case 'get_user_details':
      return found(store.users[text('user_id')], 'User')
    case 'get_order_details':
      return found(store.orders[text('order_id')], 'Order')
    case 'get_product_details':
      return found(store.products[text('product_id')], 'Product')
    case 'get_item_details':
      return found(Object.values(store.products).find(({ variants }) => variants[text('item_id')])?.variants[text('item_id')], 'Item')
    case 'list_all_product_types':
      return JSON.stringify(Object.fromEntries(Object.values(store.products).map(({ name, product_id }) => [name, product_id])))
    case 'calculate':
      return calculated(text('expression'))
    case 'transfer_to_human_agents':
      return 'Transfer successful'
    case 'modify_user_address':
      return Object.assign(found(store.users[text('user_id')], 'User'), { address: addressIn(input) })
    default:
      return changeOrder(store, tool, input)
  }
}

function found<Value>(value: Value | undefined, what: string): Value {
  if (value === undefined) throw new Error(`${what} not found`)
  return value
}

function userByName({ users }: Store, text: (name: string) => string): string {
  const same = (one: string, name: string): boolean => one.toLowerCase() === text(name).toLowerCase()
  const user = Object.values(users).find(
    ({ name, address }) => same(name.first_name, 'first_name') && same(name.last_name, 'last_name') && address['zip'] === text('zip'),
  )
  return found(user, 'User').user_id
}

function calculated(expression: string): string {
  if (!/^[\d+\-*/(). ]+$/.test(expression)) throw new Error('Invalid characters in expression')
  const tokens = expression.match(/\d+(?:\.\d+)?|[-+*/()]/g) ?? []
  let at = 0
  const atom = (): number => {
    const token = tokens[at++]
    if (token === '-') return -atom()
    if (token !== '(') return Number(token)
    const value = sum()
    at += 1
    return value
  }
  const product = (): number => {
    let value = atom()
    while (tokens[at] === '*' || tokens[at] === '/') value = tokens[at++] === '*' ? value * atom() : value / atom()
    return value
  }
  const sum = (): number => {
    let value = product()
    while (tokens[at] === '+' || tokens[at] === '-') value = tokens[at++] === '+' ? value + product() : value - product()
    return value
  }
  return String(rounded(sum()))
}

const rounded = (amount: number): number => Math.round(amount * 100) / 100
const ADDRESS = ['address1', 'address2', 'city', 'state', 'country', 'zip']
const addressIn = (input: JsonFields): JsonFields => Object.fromEntries(ADDRESS.map((name) => [name, input[name] ?? '']))

/** The text of an argument; empty if it is missing or another value. */
const textIn =
  (input: JsonFields) =>
  (name: string): string => {
    const value = input[name]
    return typeof value === 'string' ? value : ''
  }

function changeOrder(store: Store, tool: string, input: JsonFields): Order {
  const text = textIn(input)
  const order = found(store.orders[text('order_id')], 'Order')
  const must = (status: string, isSo = order.status === status): void => {
    if (!isSo) throw new Error(`the order is not ${status}`)
  }
  const method = text('payment_method_id')
  const ids = (name: string): string[] => (Array.isArray(input[name]) ? input[name].map(String) : [])
  if (tool === 'cancel_pending_order') {
    must('pending')
    return cancelled(store, order, text('reason'))
  }
  if (tool === 'modify_pending_order_address') {
    must('pending', order.status.includes('pending'))
    return Object.assign(order, { address: addressIn(input) })
  }
  if (tool === 'modify_pending_order_payment') {
    must('pending', order.status.includes('pending'))
    return paidAnew(store, order, method)
  }
  const pays = methodOf(store, order, method)
  const items = ids('item_ids')
  if (
    items.some(
      (id) =>
        countOf(items, id) >
        countOf(
          order.items.map(({ item_id }) => item_id),
          id,
        ),
    )
  )
    throw new Error('Item not found')
  if (tool === 'return_delivered_order_items') {
    must('delivered')
    if (pays.source !== 'gift_card' && method !== order.payment_history[0]?.payment_method_id) throw new Error('another payment method')
    return Object.assign(order, { status: 'return requested', return_items: items.toSorted(), return_payment_method_id: method })
  }
  const anew = ids('new_item_ids')
  if (anew.length !== items.length) throw new Error('The number of items differs')
  const bought = items.map((id, index) => variantFor(store, order, { id, anew: anew[index] ?? '' }))
  const difference = rounded(bought.reduce((sum, { item, variant }) => sum + variant.price - item.price, 0))
  if ((pays.balance ?? Infinity) < difference) throw new Error('Insufficient gift card balance')
  if (tool === 'exchange_delivered_order_items') {
    must('delivered')
    const exchange = { exchange_items: items.toSorted(), exchange_new_items: anew.toSorted(), exchange_payment_method_id: method }
    return Object.assign(order, { status: 'exchange requested', ...exchange, exchange_price_difference: difference })
  }
  if (tool !== 'modify_pending_order_items') throw new Error(`${tool} is unknown`)
  must('pending')
  order.payment_history.push(paid(difference > 0 ? 'payment' : 'refund', Math.abs(difference), method))
  take(pays, difference)
  for (const { item, variant } of bought) Object.assign(item, { item_id: variant.item_id, price: variant.price, options: variant.options })
  return Object.assign(order, { status: 'pending (item modified)' })
}

const countOf = (all: readonly string[], wanted: string): number => all.filter((one) => one === wanted).length
const paid = (transaction_type: string, amount: number, payment_method_id: string): Payment => ({
  transaction_type,
  amount,
  payment_method_id,
})
const methodOf = ({ users }: Store, { user_id }: Order, id: string): Method => found(users[user_id]?.payment_methods[id], 'Payment method')

function take(method: Method, amount: number): void {
  if (method.source === 'gift_card') method.balance = rounded((method.balance ?? 0) - amount)
}

function variantFor({ products }: Store, { items }: Order, { id, anew }: { id: string; anew: string }): { item: Item; variant: Variant } {
  const item = found(
    items.find(({ item_id }) => item_id === id),
    'Item',
  )
  const variant = found(products[item.product_id]?.variants[anew], 'New item')
  if (!variant.available) throw new Error('New item not available')
  return { item, variant }
}

function cancelled(store: Store, order: Order, reason: string): Order {
  if (reason !== 'no longer needed' && reason !== 'ordered by mistake') throw new Error('Invalid reason')
  const refunds = order.payment_history.map(({ amount, payment_method_id }) => paid('refund', amount, payment_method_id))
  for (const { amount, payment_method_id } of refunds) take(methodOf(store, order, payment_method_id), -amount)
  order.payment_history.push(...refunds)
  return Object.assign(order, { status: 'cancelled', cancel_reason: reason })
}

function paidAnew(store: Store, order: Order, method: string): Order {
  const [first, ...more] = order.payment_history
  if (first?.transaction_type !== 'payment' || more.length > 0) throw new Error('There should be one payment')
  const pays = methodOf(store, order, method)
  if (first.payment_method_id === method) throw new Error('The payment method is the same')
  if ((pays.balance ?? Infinity) < first.amount) throw new Error('Insufficient gift card balance')
  order.payment_history.push(paid('payment', first.amount, method), paid('refund', first.amount, first.payment_method_id))
  take(pays, first.amount)
  take(methodOf(store, order, first.payment_method_id), -first.amount)
  return order
}

/** True if the value is in a text or in what a call gave: a model could have known it. */
export function isKnown(value: Json, texts: readonly string[]): boolean {
  if (Array.isArray(value)) return value.every((one) => isKnown(one, texts))
  if (isJsonFields(value)) return Object.values(value).every((one) => isKnown(one, texts))
  const wanted = String(value).toLowerCase()
  return texts.some((text) => text.toLowerCase().includes(wanted))
}
