import type { Document } from './document.ts'
import { operationGroups, type Answer, type Group, type Media, type Operation, type Parameter } from './operations.ts'
import { limitsText, referenceName, schemaText, type Schema } from './schema-text.ts'
import { style } from './style.ts'

/** The API description as one self-contained page: it works offline and loads nothing. */
export function docsPage(document: Document): string {
  const groups = operationGroups(document)
  const schemas = Object.entries((document.components?.schemas ?? {}) as Record<string, Schema>)
  const { title, description } = document.info
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${title} API</title>
        <style>
          ${{ html: style }}
        </style>
      </head>
      <body>
        <nav aria-label="Routes">
          ${groups.map(menu)}
          <h2><a href="#schemas">Shapes</a></h2>
        </nav>
        <main>
          <h1>${title} API</h1>
          ${prose(description)}
          <p>The same for programs: <a href="/v1/openapi.json">/v1/openapi.json</a> (OpenAPI ${document.openapi}).</p>
          <pre>export URL=http://localhost:8787 KEY=…</pre>
          ${groups.map(section)}
          <section id="schemas">
            <h2>Shapes</h2>
            ${schemas.map(([name, schema]) => shape(name, schema))}
          </section>
        </main>
      </body>
    </html> `
  return page.html
}

const menu = ({ name, operations }: Group): Html =>
  html`<h2>${name}</h2>
    <ul>
      ${operations.map(({ anchor, summary }) => html`<li><a href="#${anchor}">${summary}</a></li>`)}
    </ul>`

const section = ({ name, description, operations }: Group): Html =>
  html`<section>
    <h2>${name}</h2>
    ${prose(description)}${operations.map(article)}
  </section>`

function article(operation: Operation): Html {
  const { anchor, method, path, summary, description, open, roles, parameters, body, answers } = operation
  const access = open ? html`<span class="role">no key needed</span>` : html`<span class="role">role ${roles.join(' or ')}</span>`
  return html`<article id="${anchor}">
    <h3><a href="#${anchor}">${summary}</a></h3>
    <p class="route"><span class="method ${method}">${method.toUpperCase()}</span> <code>${path}</code> ${access}</p>
    ${prose(description)}
    ${
      parameters.length > 0
        ? html`<h4>Parameters</h4>
            <div class="wide">
              <table>
                ${parameters.map(parameterRow)}
              </table>
            </div>`
        : undefined
    }
    ${
      body
        ? html`<h4>Body</h4>
            ${prose(body.description)}${medias(body.content)}`
        : undefined
    }
    <h4>Answers</h4>
    ${answers.filter(isSuccess).map(answerBlock)}
    <div class="wide">
      <table>
        ${answers.filter((answer) => !isSuccess(answer)).map(answerRow)}
      </table>
    </div>
    <h4>Example</h4>
    <pre>${curlCommand(operation)}</pre>
  </article>`
}

const isSuccess = ({ status }: Answer): boolean => Number(status) < 400

function parameterRow({ name, in: place, required, description, schema = {} }: Parameter): Html {
  const limits = limitsText(schema)
  return html`<tr>
    <th scope="row"><code>${name}</code></th>
    <td>${place}${required ? '' : ', optional'}</td>
    <td><code>${schemaText(schema)}</code>${limits ? ` ${limits}` : ''}</td>
    <td>${inline(description ?? '')}</td>
  </tr>`
}

const answerBlock = ({ status, description, content }: Answer): Html =>
  html`<p><strong>${status}</strong> ${inline(description)}</p>
    ${medias(content ?? {})}`

const answerRow = ({ status, description, content = {} }: Answer): Html =>
  html`<tr>
    <th scope="row">${status}</th>
    <td>${inline(description)}</td>
    <td>${Object.values(content).map(({ schema }) => named(schema))}</td>
  </tr>`

function medias(content: Record<string, Media>): Html[] {
  return Object.entries(content).map(([type, { schema, example }]) => {
    const sample =
      example === undefined || type === 'application/json'
        ? undefined
        : html`<pre>${typeof example === 'string' ? example : JSON.stringify(example)}</pre>`
    return html`<div class="media">
      <span class="type">${type}</span>${schema ? html`<pre>${linked(schemaText(schema))}</pre>` : undefined}${sample}
    </div>`
  })
}

const named = (schema: Schema | undefined): Html => (schema?.$ref === undefined ? html`` : shapeLink(referenceName(schema.$ref)))

const shape = (name: string, schema: Schema): Html =>
  html`<article id="shape-${name}">
    <h3>${name}</h3>
    ${prose(schema.description)}
    <pre>${linked(schemaText(schema))}</pre>
  </article>`

/** Links the names of schemas in a type: the only capitalised words outside comments and quotes. */
function linked(text: string): Html[] {
  return text.split('\n').map((line, index) => {
    const [code = '', ...comment] = line.split('  // ')
    const pieces = code.split(/("[^"]*"|\b[A-Z]\w+\b)/).map((piece) => (/^[A-Z]\w+$/.test(piece) ? shapeLink(piece) : html`${piece}`))
    const note = comment.length > 0 ? html` <i>${comment.join('  // ')}</i>` : html``
    return html`${index > 0 ? '\n' : ''}${pieces}${note}`
  })
}

const shapeLink = (name: string): Html => html`<a href="#shape-${name}">${name}</a>`

/** Names in a path, as an example would have them. */
const samples: Record<string, string> = { scope: 'default', id: '01a1fd07-7a9e-763b-9352-18e70e5f5083', name: 'daily', ref: 'greet' }

/** A command that calls an operation, with `$URL` for the address and `$KEY` for the key. */
function curlCommand({ method, path, open, parameters, body, streams }: Operation): string {
  const [type, example] = Object.entries(body?.content ?? {}).map(([type, media]) => [type, media.example] as const)[0] ?? []
  const address = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => samples[name] ?? name)
  const lines = [
    `curl ${streams ? '-N ' : ''}${method === 'get' ? '' : `-X ${method.toUpperCase()} `}"$URL${address}${queryOf(parameters)}"`,
    open ? '' : '-H "Authorization: Bearer $KEY"',
    type === undefined ? '' : `-H "Content-Type: ${type}"`,
    example === undefined ? '' : `-d '${typeof example === 'string' ? example : JSON.stringify(example)}'`,
  ]
  return lines.filter((line) => line !== '').join(' \\\n  ')
}

function queryOf(parameters: readonly Parameter[]): string {
  const given = parameters.filter(({ in: place, example }) => place === 'query' && example !== undefined)
  return given.length === 0 ? '' : `?${given.map(({ name, example }) => `${name}=${String(example)}`).join('&')}`
}

/** HTML that is safe to be put into a page. */
type Html = { html: string }
type Piece = Html | string | number | undefined | readonly Html[]

/** Text is escaped, HTML is not. */
function html(strings: TemplateStringsArray, ...pieces: readonly Piece[]): Html {
  return { html: strings.reduce((text, string, index) => text + markup(pieces[index - 1]) + string) }
}

function markup(piece: Piece): string {
  if (piece === undefined) return ''
  if (typeof piece !== 'object') return escape(String(piece))
  return 'html' in piece ? piece.html : piece.map((one) => one.html).join('')
}

/** Renders the Markdown of descriptions: `code`, **strong** and blank lines between paragraphs. */
function prose(text: string | undefined): readonly Html[] {
  if (!text) return []
  return text.split('\n\n').map((paragraph) => html`<p>${inline(paragraph)}</p>`)
}

function inline(text: string): Html {
  const marked = escape(text)
    .replaceAll(/`([^`]+)`/g, '<code>$1</code>')
    .replaceAll(/\*\*([^*]+)\*\*/g, '<strong>$1</strong>')
  return { html: marked }
}

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
const escape = (text: string): string => text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? character)
