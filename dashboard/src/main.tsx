import { render } from 'preact'
import { App } from './app.tsx'
import { applyTheme } from './layout/theme.ts'
// Each concept has a stylesheet; a page's own is imported by the page.
import './css/base.css'
import './css/layout.css'
import './css/controls.css'
import './css/table.css'
import './css/parts.css'

applyTheme()
render(<App />, document.body)
