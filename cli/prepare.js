// The build step of wrangler.toml: `reflex prepare`. Our own commands have prepared the project
// before they start wrangler, and say so: this file then ends before it loads the command line.
import process from 'node:process'

if (!process.env['REFLEX_PREPARED']) {
  process.argv.push('prepare')
  await import('./reflex.js')
}
