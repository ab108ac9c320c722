/**
 * A variable's or header's value, as shown to a person before they accept an entry. The entry's author chooses names and values, so as little as
 * possible is masked: only what has the form of a secret, and nothing that decides what is run or where data goes.
 */
import type { ShownValue } from '../../contract/servers/servers.ts'
import { looksSecret } from './literal-secrets.ts'
import { isPlaceholder } from './placeholders.ts'

const MAX_SHOWN_CHARS = 4000

/** These variables make a command load other code, take it or its settings from elsewhere, or trust and use another network path. */
export const LOADERS = new RegExp(
  `^(${[
    'PATH|HOME|XDG_.*|ENV|BASH_.*|SHELL|SHELLOPTS|PS4|PROMPT_COMMAND|ZDOTDIR|IFS|LD_.*|DYLD_.*|GCONV_PATH|LOCPATH|GLIBC_TUNABLES',
    'NODE_(OPTIONS|PATH|EXTRA_CA_CERTS|TLS_REJECT_UNAUTHORIZED|ICU_DATA|REPL_.*|COMPILE_CACHE)|ELECTRON_RUN_AS_NODE|NPM_CONFIG_.*|YARN_.*|BUN_.*|DENO_.*|COREPACK_.*',
    'PYTHON.*|PIP_.*|UV_.*|VIRTUAL_ENV|PERL5.*|RUBY(OPT|LIB)|GEM_.*|BUNDLE_.*|(_?JAVA|JDK_JAVA)_.*|CLASSPATH|MAVEN_.*|GRADLE_.*',
    'DOTNET_.*|CORECLR_.*|COR_(ENABLE_)?PROFIL.*|COMPLUS_.*|NUGET_.*|RESTORE\\w*(SOURCES?|CONFIGFILE|PATH)|MSBUILD.*|GO(PROXY|FLAGS|ENV|NOSUMDB|SUMDB)|CARGO_.*|RUSTUP_.*|LUA_.*|PHPRC|PHP_INI_.*',
    'GIT_.*|SSH_.*|DOCKER_.*|KUBECONFIG|.*_PROXY|SSL_CERT_.*|SSLKEYLOGFILE|OPENSSL_.*|.*_CA_(BUNDLE|CERTS)|NETRC|CURL_HOME|WGETRC|HOSTALIASES|RES_OPTIONS|LOCALDOMAIN',
    'EDITOR|VISUAL|PAGER|.*_PAGER|LESSOPEN|LESSCLOSE'
  ].join('|')})$`,
  'i'
)

/** Names of places and programs, such as TOKEN_ENDPOINT, although a secret has a similar name. */
const PLACE_NAME =
  /(^|_|-)(URLS?|URI|HOST(NAME)?|ENDPOINT|ADDRESS|ISSUER|SERVER|DOMAIN|PORT|PROXY|PATH|FILE|DIR|FOLDER|SOCK(ET)?|COMMAND|CMD|HELPER)$/i
const PASSWORD_IN_ADDRESS = /(?<=^[a-z][a-z0-9+.-]{1,30}:\/\/[^\s/?#@:]{0,200}:)[^\s/@]{1,500}(?=@)/i
/** One word that is neither a path, an option nor an address. */
const TOKEN = /^(?![/.~-])[\w.~+/=-]+$/
const SCHEME = /^(Bearer|Basic|Token|ApiKey|Api-Key|Key|Digest|Negotiate|DPoP|AWS4-HMAC-SHA256) \S+$/i

/** Parts of a place: the program makes an address of them. */
const PLACE_PART =
  /(^|_|-)(BASE|ORIGIN|(SUB)?DOMAIN|SITE|SHOP|TENANT|ACCOUNT|INSTANCE|REGION|ZONE|CLUSTER|REGISTRY|MIRROR|UPSTREAM|GATEWAY|BROKER|TARGET|REMOTE|CONFIG|PROFILE)(_?(NAME|ID|URL))?$/i
/** An address, a host or a path. */
const PLACE_VALUE = /:\/\/|^[/~.]|^[\w-]+(\.[\w-]+)*(\.[a-z]{2,}|:\d+)([:/]|$)/i

/** Whether a variable or a header can lead the other values elsewhere. */
export function decidesPlace(name: string, value: unknown): boolean {
  if (LOADERS.test(name) || PLACE_NAME.test(name) || PLACE_PART.test(name)) return true
  return typeof value === 'string' && PLACE_VALUE.test(value)
}

export function shownValue(name: string, value: string): ShownValue {
  if (isPlaceholder(value)) return { name, placeholder: value, value: null, looksSecret: false }
  if (LOADERS.test(name) || !looksSecret(name, value))
    return { name, placeholder: null, value: cut(value), looksSecret: false }
  const isPlace = PLACE_NAME.test(name) && !looksSecret('', value)
  const isMasked = !isPlace && (TOKEN.test(value) || SCHEME.test(value))
  const shown = isMasked ? null : cut(value.replace(PASSWORD_IN_ADDRESS, '•••'))
  return { name, placeholder: null, value: shown, looksSecret: true }
}

function cut(value: string): string {
  const rest = value.length - MAX_SHOWN_CHARS
  return rest <= 0 ? value : `${value.slice(0, MAX_SHOWN_CHARS)}… (${rest} more characters)`
}
