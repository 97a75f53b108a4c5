#compdef my-tool
_my_tool() {
    local path_="" word
    local -a offers
    for word in "${(@)words[2,CURRENT-1]}"; do
        case "$path_/$word" in
            "/run") path_="run" ;;
            "/tools") path_="tools" ;;
            "tools/list") path_="tools list" ;;
            "/play") path_="play" ;;
            "/completion") path_="completion" ;;
        esac
    done
    case "$path_" in
        "")
            offers=('run:Run it.' 'tools:Many.' 'play:Play files.' 'completion:Complete.' '--help:Show context-sensitive help.' '--verbose:Say more on standard error, debug logs, and what the workers log.' '--version:Print the version and exit.' )
            _describe 'words' offers
            ;;
        "run")
            offers=('--help:Show context-sensitive help.' '--verbose:Say more on standard error, debug logs, and what the workers log.' '--version:Print the version and exit.' '--file:A quoted file, HOME.' '--mode:How.' )
            _describe 'words' offers
            _files
            ;;
        "tools")
            offers=('list:List them.' '--help:Show context-sensitive help.' '--verbose:Say more on standard error, debug logs, and what the workers log.' '--version:Print the version and exit.' )
            _describe 'words' offers
            ;;
        "tools list")
            offers=('--help:Show context-sensitive help.' '--verbose:Say more on standard error, debug logs, and what the workers log.' '--version:Print the version and exit.' )
            _describe 'words' offers
            ;;
        "play")
            offers=('--help:Show context-sensitive help.' '--verbose:Say more on standard error, debug logs, and what the workers log.' '--version:Print the version and exit.' )
            _describe 'words' offers
            _files
            ;;
        "completion")
            offers=('bash' 'zsh' 'fish' '--help:Show context-sensitive help.' '--verbose:Say more on standard error, debug logs, and what the workers log.' '--version:Print the version and exit.' )
            _describe 'words' offers
            ;;
    esac
}
compdef _my_tool my-tool
