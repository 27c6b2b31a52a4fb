// The API reference. It shows /v1/openapi.json, and sends requests with the key of the field "Key".
const main = document.getElementById('reference')
const menu = document.querySelector('.columns > nav')
const METHODS = ['get', 'post', 'put', 'patch', 'delete']

/** An element; a child may be a text, an element, or a list of them. */
function h(name, attributes, ...children) {
  const element = document.createElement(name)
  for (const [key, value] of Object.entries(attributes ?? {})) element.setAttribute(key, value)
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined))
  return element
}

/** A description: its paragraphs, with what stands between backticks as code. */
const prose = (text = '') =>
  text
    .split(/\n\n+/)
    .filter(Boolean)
    .map((part) => h('p', {}, inline(part)))
const inline = (text = '') => text.split('`').map((part, index) => (index % 2 === 1 ? h('code', {}, part) : part))
const between = (parts, mark) => parts.flatMap((part, index) => (index === 0 ? [part] : [mark, part]))

/** A schema in the notation of TypeScript. Names of schemas are links. */
function typeOf(schema, depth = 0) {
  if (typeof schema !== 'object' || schema === null) return ['any']
  if (schema.$ref) {
    const name = schema.$ref.split('/').at(-1)
    return [h('a', { href: `#${name}` }, name)]
  }
  const options = schema.anyOf ?? schema.oneOf ?? schema.allOf
  if (options) {
    const parts = options.map((option) => typeOf(option, depth))
    return between(parts, schema.allOf ? ' & ' : ' | ')
  }
  if (schema.const !== undefined) return [JSON.stringify(schema.const)]
  if (schema.enum) return [schema.enum.map((value) => JSON.stringify(value)).join(' | ')]
  if (Array.isArray(schema.type))
    return between(
      schema.type.map((type) => typeOf({ ...schema, type }, depth)),
      ' | ',
    )
  if (schema.type === 'array') return ['(', typeOf(schema.items, depth), ')[]']
  if (schema.type !== 'object' && !schema.properties) return [schema.type ?? 'any']
  return fieldsOf(schema, depth)
}

function fieldsOf({ properties = {}, required = [], additionalProperties: others }, depth) {
  const space = '  '.repeat(depth + 1)
  const rows = Object.entries(properties).map(([name, field]) => [
    `${space}${name}${required.includes(name) ? '' : '?'}: `,
    typeOf(field, depth + 1),
    field.description ? h('i', {}, `  // ${field.description.replaceAll('\n', ' ')}`) : null,
    '\n',
  ])
  if (others && others !== true) rows.push([`${space}[name: string]: `, typeOf(others, depth + 1), '\n'])
  return rows.length === 0 ? ['object'] : ['{\n', rows, '  '.repeat(depth), '}']
}

const code = (...parts) => h('pre', {}, h('code', {}, parts))
const asText = (value) => (typeof value === 'string' ? value : JSON.stringify(value, null, 2))

function bodiesOf(content = {}) {
  return Object.entries(content).map(([media, { schema, example }]) => [
    h('p', {}, h('code', {}, media)),
    example === undefined ? null : code(asText(example)),
    schema ? h('details', {}, h('summary', {}, 'Type'), code(typeOf(schema))) : null,
  ])
}

function parameterRow({ name, in: place, required, description, schema }) {
  return h('tr', {}, [
    h('td', {}, h('code', {}, name)),
    h('td', {}, place, required ? ', required' : ''),
    h('td', {}, h('code', {}, typeOf(schema)), schema?.default === undefined ? '' : `, ${schema.default} if absent`),
    h('td', {}, inline(description)),
  ])
}

/** Sends the request with the values of the form, and shows the answer below it. */
async function send(form, { method, path }) {
  const fields = new FormData(form)
  const key = document.getElementById('key').value
  const query = new URLSearchParams()
  let address = path
  for (const { name, in: place } of form.parameters) {
    const value = fields.get(name)
    if (place === 'path') address = address.replace(`{${name}}`, encodeURIComponent(value))
    else if (place === 'query' && value !== '') query.set(name, value)
  }
  const headers = { ...(key !== '' && { authorization: `Bearer ${key}` }) }
  const body = fields.get('body')
  if (body) headers['content-type'] = 'application/json'
  const answer = await fetch(`${address}${query.size > 0 ? `?${query}` : ''}`, { method, headers, ...(body && { body }) })
  const text = await answer.text()
  const shown = answer.headers.get('content-type')?.includes('json') ? asText(JSON.parse(text)) : text
  form.querySelector('output').replaceChildren(h('p', {}, `${answer.status} ${answer.statusText}`), code(shown))
}

function requestForm(method, path, { parameters = [], requestBody }) {
  const used = parameters.filter((one) => one.in !== 'header')
  const example = requestBody?.content?.['application/json']?.example
  const form = h(
    'form',
    {},
    used.map(({ name }) => h('label', {}, `${name} `, h('input', { name, autocomplete: 'off' }), ' ')),
    requestBody ? h('label', {}, 'Body ', h('textarea', { name: 'body', rows: 6 }, example === undefined ? '' : asText(example))) : null,
    h('button', {}, 'Send'),
    h('output', {}),
  )
  form.parameters = used
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    send(form, { method: method.toUpperCase(), path }).catch((error) => form.querySelector('output').replaceChildren(error.message))
  })
  return form
}

function partsOf(method, path, operation) {
  const { description, parameters = [], requestBody, responses = {} } = operation
  const roles = operation['x-reflex-roles']
  return [
    prose(description),
    h('p', {}, roles ? `Needs a key with the role ${roles.join(' or ')}.` : 'Needs no key.'),
    parameters.length > 0 ? h('div', { class: 'wide' }, h('table', {}, parameters.map(parameterRow))) : null,
    requestBody ? [h('h4', {}, 'Body'), prose(requestBody.description), bodiesOf(requestBody.content)] : null,
    h('h4', {}, 'Answers'),
    Object.entries(responses).map(([status, answer]) => [
      h('p', {}, h('b', {}, status), ' ', inline(answer.description)),
      Number(status) < 300 ? bodiesOf(answer.content) : null,
    ]),
    h('h4', {}, 'Try it'),
    requestForm(method, path, operation),
  ]
}

/** A part that is filled in once it is opened: the whole page would be a megabyte. */
function folded(id, title, fill) {
  const part = h('details', { id, class: 'operation' }, h('summary', {}, title))
  part.addEventListener('toggle', () => part.open && part.children.length === 1 && part.append(h('div', {}, fill())))
  return part
}

function show({ info, tags = [], paths, components }) {
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    METHODS.flatMap((method) => (item[method] ? [{ method, path, operation: item[method] }] : [])),
  )
  const names = [...new Set([...tags.map(({ name }) => name), ...operations.map(({ operation }) => operation.tags?.[0] ?? 'Others')])]
  const groups = names.map((name) => [name, operations.filter(({ operation }) => (operation.tags?.[0] ?? 'Others') === name)])
  const used = groups.filter(([, own]) => own.length > 0)
  menu.replaceChildren(
    h(
      'ul',
      {},
      [...used.map(([name]) => name), 'Schemas'].map((name) => h('li', {}, h('a', { href: `#tag-${name}` }, name))),
    ),
  )
  main.replaceChildren(
    h('h1', {}, `${info.title} API`),
    ...prose(info.description),
    h('p', {}, h('a', { href: '/v1/openapi.json' }, 'The OpenAPI document')),
    ...used.flatMap(([name, own]) => [
      h('h2', { id: `tag-${name}` }, name),
      ...prose(tags.find((tag) => tag.name === name)?.description),
      ...own.map(({ method, path, operation }) =>
        folded(operation.operationId, [h('code', {}, `${method.toUpperCase()} ${path}`), ` ${operation.summary ?? ''}`], () =>
          partsOf(method, path, operation),
        ),
      ),
    ]),
    h('h2', { id: 'tag-Schemas' }, 'Schemas'),
    ...Object.entries(components?.schemas ?? {}).map(([name, schema]) =>
      folded(name, name, () => [prose(schema.description), code(typeOf(schema))]),
    ),
  )
  openNamed()
}

/** Opens what the address names, as a link to a schema does. */
function openNamed() {
  const named = document.getElementById(decodeURIComponent(location.hash.slice(1)))
  if (named === null) return
  named.hidden = false
  if (named.matches('details')) named.open = true
  named.scrollIntoView()
}

/** Hides the operations and schemas that lack one of the words. */
function filter(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  for (const part of main.querySelectorAll('.operation')) {
    const own = `${part.id} ${part.firstChild.textContent}`.toLowerCase()
    part.hidden = !words.every((word) => own.includes(word))
  }
}

document.getElementById('filter').addEventListener('input', (event) => filter(event.target.value))
addEventListener('hashchange', openNamed)
const answer = await fetch('/v1/openapi.json')
if (answer.ok) show(await answer.json())
else main.append(h('p', {}, `The description could not be loaded: status ${answer.status}.`))
