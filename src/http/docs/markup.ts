/** HTML that is safe to be put into a page. */
export type Html = { html: string }
type Piece = Html | string | number | undefined | readonly Html[]

/** Text is escaped, HTML is not. */
export function html(strings: TemplateStringsArray, ...pieces: readonly Piece[]): Html {
  return { html: strings.reduce((text, string, index) => text + markup(pieces[index - 1]) + string) }
}

function markup(piece: Piece): string {
  if (piece === undefined) return ''
  if (typeof piece !== 'object') return escape(String(piece))
  return 'html' in piece ? piece.html : piece.map((one) => one.html).join('')
}

/** Renders the Markdown of descriptions: `code`, **strong** and blank lines between paragraphs. */
export function prose(text: string | undefined): readonly Html[] {
  if (!text) return []
  return text.split('\n\n').map((paragraph) => html`<p>${inline(paragraph)}</p>`)
}

export function inline(text: string): Html {
  const marked = escape(text)
    .replaceAll(/`([^`]+)`/g, '<code>$1</code>')
    .replaceAll(/\*\*([^*]+)\*\*/g, '<strong>$1</strong>')
  return { html: marked }
}

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
const escape = (text: string): string => text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? character)
