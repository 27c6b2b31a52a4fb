/** Control characters, terminal escapes, zero-width characters, and marks that reorder text. */
// oxlint-disable-next-line no-control-regex
const HIDDEN = /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u00AD\u061C\u180E\u200B-\u200F\u202A-\u202E\u2060-\u2069\uFEFF]/g

/**
 * Untrusted text with its invisible characters spelled out: `\u202e` instead of text that runs
 * backwards.
 */
export const visible = (text: string): string =>
  text.replaceAll(HIDDEN, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** Untrusted text, which cannot change the direction of what is around it. */
export function Text({ text, most = 300 }: { text: string; most?: number }) {
  if (text.length <= most) return <bdi>{visible(text)}</bdi>
  return (
    <bdi>
      {visible(text.slice(0, most))}
      <span class="quiet">… ({text.length.toLocaleString('en')} characters)</span>
    </bdi>
  )
}

/** Untrusted texts, one below the other. */
export const Lines = ({ of, most = 600 }: { of: readonly string[]; most?: number }) => (
  <ul>
    {of.map((text, index) => (
      <li key={index}>
        <Text text={text} most={most} />
      </li>
    ))}
  </ul>
)

/** In place of the content of a version that was listed for sale. */
export const SEALED = 'It is for sale: only its owner and admins read its content.'
